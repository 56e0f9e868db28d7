#pragma once

/// @file
/// Memory that several captures of streams share.

#include <compare>
#include <cstdint>

namespace tensorpool {

/// Names memory that several captures share, such as those of graphs that are never launched at the
/// same time. The program chooses the two numbers; PyTorch passes those of its MempoolId_t.
struct CapturePool {
    /// The first number.
    std::uint64_t first = 0;
    /// The second number.
    std::uint64_t second = 0;

    /// Orders pools by their numbers.
    friend auto operator<=>(const CapturePool&, const CapturePool&) = default;
};

}  // namespace tensorpool
