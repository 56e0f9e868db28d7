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
};

/// Slices are the times between two neighbouring moments at which some buffer begins or ends.
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
