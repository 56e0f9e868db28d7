#pragma once

/// @file
/// The same work as `develop` with memory for phases of work.

#include <opencv2/core.hpp>

#include "develop/context_mat_allocator.hpp"
#include "develop/operators.hpp"

namespace tensorpool::photos {

/// What `develop` does, with the same result bit for bit. `memory` must be OpenCV's default
/// allocator. The result is made in the arena, and two pictures in floats that the operators take
/// turns to read and to write: an arena frees from its top only, so with a mark for each operator
/// instead, the results of all five would stay until the last. What an operator needs inside is
/// scratch under its name, as scratch_report() tells.
cv::Mat develop_in_context(const cv::Mat& picture, ContextMatAllocator& memory,
                           const Development& how = {});

}  // namespace tensorpool::photos
