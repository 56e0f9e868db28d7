#pragma once

/// @file
/// How the elements of a cv::Mat lie, for allocators of cv::Mat: those of opencv.hpp and your own.

#include <cstddef>

#include <opencv2/core.hpp>

namespace tensorpool {

/// Puts the strides of `sizes[0] * … * sizes[dims - 1]` elements of `type` into `step` (bytes; may
/// be nullptr), from the last dimension outwards; those of the caller's memory stand, unless they
/// are CV_AUTOSTEP of opencv2/core/types_c.h. Returns the bytes in all.
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
