#pragma once

/// @file
/// The packing problem. Times are ranks (slices), independent of the caller's clock.

#include <cstdint>
#include <vector>

namespace tensorpool::planner {

/// A buffer that is alive in the slices [begin, end). `bytes` is above 0.
struct Buffer {
    std::uint32_t begin;
    std::uint32_t end;
    std::uint64_t bytes;
    std::uint64_t alignment;
    std::uint64_t duration;  ///< by the caller's clock; used for weights, not for placement
};

/// A set of buffers whose times are numbered in slices. A slice is an interval in which no buffer
/// begins or ends. Every slice that holds more buffers than its neighbours is kept, so two buffers
/// are alive at once if and only if they share a slice. At least one buffer is alive in each slice.
/// The sizes and the alignments less one of all buffers sum up to at most 2^63. So the offset of a
/// buffer that lies on another one, or at its own alignment, cannot overflow.
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
