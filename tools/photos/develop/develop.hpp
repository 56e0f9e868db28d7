#pragma once

/// @file
/// Develops a photograph: the steps of a raw developer, each over the whole picture in floats.

#include <opencv2/core.hpp>
#include <utility>

#include "develop/context_mat_allocator.hpp"
#include "develop/operators.hpp"

namespace tensorpool::photos {

/// Which denoise and boost_detail are used: the plain ones, or those that hold less memory.
enum class Frugal { no, yes };

using cv::Mat;

struct Step {
    const char* name;
    Operator* work;
};
inline constexpr Step steps_in_light[] = {{"linear_light", linear_light},
                                          {"balance_white", balance_white},
                                          {"denoise", denoise_frugally},
                                          {"sharpen", sharpen},
                                          {"boost_detail", boost_detail_frugally}};
inline constexpr Step last_step{"display_light", display_light};

/// `result` already exists in the arena, and keeps its memory.
inline void run(const Step& step, const Mat& input, const Development& how, Mat& result,
                ContextMatAllocator& memory) {
    // The phase covers memory allocated by OpenCV's other threads.
    const MatPhase phase(memory, step.name);
    const MatScope scope(memory, step.name);
    const uchar* const data = result.data;
    step.work(input, how, result);
    CV_Assert(result.data == data);
}

/// Converts to linear light, balances white, denoises, sharpens, boosts detail over a pyramid, and
/// converts back. `picture` is 8-bit BGR of any size, and so is the result. The same picture gives
/// an identical result as long as cv::getNumThreads() is the same. Makes about 45 temporaries and
/// holds up to ten times the picture's size in floats at once, or five times with the frugal
/// operators.
inline cv::Mat develop(const cv::Mat& picture, const Development& how = {},
                       Frugal frugal = Frugal::no) {
    const bool less = frugal == Frugal::yes;
    cv::Mat light = picture;
    for (Operator* const step :
         {linear_light, balance_white, less ? denoise_frugally : denoise, sharpen,
          less ? boost_detail_frugally : boost_detail, display_light}) {
        cv::Mat result;
        step(light, how, result);
        light = std::move(result);
    }
    return light;
}

/// Does what `develop` does, with an identical result. `memory` must be OpenCV's default allocator.
/// The result and two pictures in floats are allocated in the arena; the operators read one of the
/// two and write the other in turns. An arena frees only from its top, so with a mark for each
/// operator instead, the results of all five would stay until the last. The operators' internal
/// memory is scratch under their names, as scratch_report() shows.
inline cv::Mat develop_in_context(const Mat& picture, ContextMatAllocator& memory,
                                  const Development& how = {}) {
    CV_Assert(Mat::getDefaultAllocator() == &memory);
    Mat result(picture.size(), CV_8UC3);
    Mat light(picture.size(), CV_32FC3), next(picture.size(), CV_32FC3);
    const Mat* input = &picture;
    for (const Step& step : steps_in_light) {
        run(step, *input, how, next, memory);
        cv::swap(light, next);
        input = &light;
    }
    run(last_step, light, how, result, memory);
    return result;
}

}  // namespace tensorpool::photos
