#include "develop/develop.hpp"

#include <utility>

#include "develop/context_mat_allocator.hpp"
#include "develop/operators.hpp"

namespace tensorpool::photos {
namespace {

using cv::Mat;

struct Step {
    const char* name;
    Operator* work;
};
constexpr Step steps_in_light[] = {{"linear_light", linear_light},
                                   {"balance_white", balance_white},
                                   {"denoise", denoise_frugally},
                                   {"sharpen", sharpen},
                                   {"boost_detail", boost_detail_frugally}};
constexpr Step last_step{"display_light", display_light};

/// `result` already exists in the arena, and keeps its memory.
void run(const Step& step, const Mat& input, const Development& how, Mat& result,
         ContextMatAllocator& memory) {
    // The phase covers memory allocated by OpenCV's other threads.
    const MatPhase phase(memory, step.name);
    const MatScope scope(memory, step.name);
    const uchar* const data = result.data;
    step.work(input, how, result);
    CV_Assert(result.data == data);
}

}  // namespace

cv::Mat develop(const cv::Mat& picture, const Development& how, Frugal frugal) {
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

Mat develop_in_context(const Mat& picture, ContextMatAllocator& memory, const Development& how) {
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
