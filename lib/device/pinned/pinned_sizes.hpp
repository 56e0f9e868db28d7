#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/alignment.hpp"
#include "device/caching/blocks/block_heap.hpp"
#include "device/caching/blocks/size_rules.hpp"

/// The sizes of blocks and slabs of pinned memory, in bytes.
namespace tensorpool::device {

/// Blocks above 1 MiB begin and end at multiples of 16 KiB, the granularity of the block map.
constexpr std::size_t round_pinned(std::size_t bytes) noexcept {
    return base::align_up(bytes, bytes <= small_limit ? small_grain : large_grain);
}
static_assert(round_pinned(1) == 512 && round_pinned(513 * mib) == 513 * mib);
static_assert(round_pinned(small_limit + 1) == small_limit + 16 * kib);

inline Request pinned_request(std::size_t bytes) noexcept {
    return {bytes, round_pinned(std::min(bytes, max_bytes)),
            bytes <= small_limit ? Pool::small : Pool::large, 0};
}

/// The smallest slab for a request.
constexpr std::size_t min_slab(const Request& request) noexcept {
    return base::align_up(request.rounded, slab_step);
}
/// The preferred size of a slab: an eighth of what is held already. This keeps slabs few, because
/// the system takes long for each, and at most an eighth of the memory is idle.
constexpr std::size_t preferred_slab(const Request& request, std::size_t held,
                                     std::size_t largest) noexcept {
    if (request.pool == Pool::small) return small_slab_bytes;
    const std::size_t step = std::min(held / 8 / slab_step * slab_step, largest);
    return std::max(min_slab(request), step);
}

}  // namespace tensorpool::device
