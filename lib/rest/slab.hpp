#pragma once

#include <cstddef>
#include <cstdint>

#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool::stashing {

/// The bytes of encodings that are stored together, at most.
inline constexpr std::size_t slab_bytes = std::size_t{1} << 20;

/// Consecutive encoded pieces that are stored together: in a block, or in a file.
struct Slab {
    PooledAllocation memory;     // owns nothing if the slab is in a file
    std::uint64_t position = 0;  // in the file
    std::size_t bytes = 0;
    std::size_t pieces = 0;
};

}  // namespace tensorpool::stashing
