#pragma once

/// @file
/// What is to be packed, with nothing left of the caller's clock: times are ranks.

#include <cstdint>
#include <vector>

namespace tensorpool::planner {

/// Alive in the slices [begin, end); `bytes` is above 0.
struct Buffer {
    std::uint32_t begin;
    std::uint32_t end;
    std::uint64_t bytes;
    std::uint64_t alignment;
    std::uint64_t duration;  ///< by the caller's clock: to weigh buffers with, not to place them
};

/// A slice is a time in which no buffer begins or ends, and none that holds more of them than its
/// neighbours is left out: two buffers are alive at once when they share a slice. Some buffer is
/// alive in each. The bytes and alignments less one of all buffers together are at most 2^63, so no
/// offset that is as low as another buffer or its own alignment allows can overflow.
struct Problem {
    std::vector<Buffer> buffers;
    std::uint32_t slices = 0;
};

/// An offset for each buffer of a problem.
struct Packing {
    std::vector<std::uint64_t> offsets;
    std::uint64_t peak_bytes = 0;
};

}  // namespace tensorpool::planner
