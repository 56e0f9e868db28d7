#pragma once

/// @file
/// The layout of a cv::Mat's elements, for allocators of cv::Mat: those of opencv.hpp and your own.

#include <cstddef>

#include <opencv2/core.hpp>

namespace tensorpool {

/// Computes the strides of `sizes[0] * … * sizes[dims - 1]` elements of `type` and stores them in
/// `step`.
///
/// Strides are bytes, computed from the last dimension outwards; `step` may be nullptr. With
/// `callers_memory`, strides given in `step` stay as they are, except those that are CV_AUTOSTEP of
/// opencv2/core/types_c.h. Returns the total number of bytes. Any thread may call it.
inline std::size_t lay_out_mat(int dims, const int* sizes, int type, bool callers_memory,
                               std::size_t* step) {
    constexpr std::size_t automatic = 0x7fffffff;
    std::size_t bytes = CV_ELEM_SIZE(type);
    for (int i = dims - 1; i >= 0; --i) {
        if (step != nullptr && callers_memory && step[i] != automatic) {
            CV_Assert(bytes <= step[i]);
            bytes = step[i];
        } else if (step != nullptr) {
            step[i] = bytes;
        }
        bytes *= static_cast<std::size_t>(sizes[i]);
    }
    return bytes;
}

}  // namespace tensorpool
