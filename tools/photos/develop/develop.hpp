#pragma once

/// @file
/// Develops a photograph: the steps of a raw developer, each over the whole picture in floats.

#include <opencv2/core.hpp>

#include "develop/context_mat_allocator.hpp"
#include "develop/operators.hpp"

namespace tensorpool::photos {

/// Which denoise and boost_detail are used: the plain ones, or those that hold less memory.
enum class Frugal { no, yes };

/// Converts to linear light, balances white, denoises, sharpens, boosts detail over a pyramid, and
/// converts back. `picture` is 8-bit BGR of any size, and so is the result. The same picture gives
/// an identical result as long as cv::getNumThreads() is the same. Makes about 45 temporaries and
/// holds up to ten times the picture's size in floats at once, or five times with the frugal
/// operators.
cv::Mat develop(const cv::Mat& picture, const Development& how = {}, Frugal frugal = Frugal::no);

/// Does what `develop` does, with an identical result. `memory` must be OpenCV's default allocator.
/// The result and two pictures in floats are allocated in the arena; the operators read one of the
/// two and write the other in turns. An arena frees only from its top, so with a mark for each
/// operator instead, the results of all five would stay until the last. The operators' internal
/// memory is scratch under their names, as scratch_report() shows.
cv::Mat develop_in_context(const cv::Mat& picture, ContextMatAllocator& memory,
                           const Development& how = {});

}  // namespace tensorpool::photos
