#pragma once

#include <cstddef>
#include <memory>

#include <boost/intrusive/list.hpp>

#include <tensorpool/device/backend.hpp>

#include "device/caching/blocks/block.hpp"

namespace tensorpool::device {

/// Memory that the backend returned in one piece, or an "expandable" range of addresses into which
/// memory is mapped granule by granule. All its blocks belong to one stream. Guarded by the
/// allocator's lock.
struct Slab : boost::intrusive::list_base_hook<> {
    std::byte* base = nullptr;
    std::size_t bytes = 0;       // size of the address range
    std::size_t held_bytes = 0;  // memory: all of it, or the mapped part
    std::size_t free_bytes = 0;  // the part of `held_bytes` in the sets
    Pool pool = Pool::small;
    StreamCache* home = nullptr;
    Block* first = nullptr;
    // For expandable slabs: the handle of each granule, nullptr if nothing is mapped. Elements
    // under a `taken` block belong to that block's thread, others are guarded by the allocator's
    // lock.
    std::unique_ptr<MemoryHandle[]> granules;
    std::size_t granule = 0;
    HoleSet holes;

    bool is_expandable() const noexcept { return granule != 0; }
    bool is_empty_range() const noexcept {
        return is_expandable() && first->is(BlockState::hole) && first->bytes == bytes;
    }
    bool is_all_free() const noexcept { return free_bytes == held_bytes; }
    /// Free bytes that cannot be released in one piece.
    std::size_t split_bytes() const noexcept { return is_all_free() ? 0 : free_bytes; }
    MemoryHandle& granule_at(const std::byte* address) const noexcept {
        return granules[static_cast<std::size_t>(address - base) / granule];
    }
};

using SlabList = boost::intrusive::list<Slab>;

}  // namespace tensorpool::device
