#pragma once

/// @file
/// Does the work of `develop` with memory that ends in phases.

#include <opencv2/core.hpp>

#include "develop/context_mat_allocator.hpp"
#include "develop/operators.hpp"

namespace tensorpool::photos {

/// Does what `develop` does, with an identical result. `memory` must be OpenCV's default allocator.
/// The result and two pictures in floats are allocated in the arena; the operators read one of the
/// two and write the other in turns. An arena frees only from its top, so with a mark for each
/// operator instead, the results of all five would stay until the last. The operators' internal
/// memory is scratch under their names, as scratch_report() shows.
cv::Mat develop_in_context(const cv::Mat& picture, ContextMatAllocator& memory,
                           const Development& how = {});

}  // namespace tensorpool::photos
