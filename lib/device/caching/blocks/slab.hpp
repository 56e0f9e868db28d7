#pragma once

#include <cstddef>
#include <memory>

#include <boost/intrusive/list.hpp>

#include <tensorpool/device/backend.hpp>

#include "device/caching/blocks/block.hpp"

namespace tensorpool::device {

/// Memory that came from the backend in one piece, or a range of addresses that memory is mapped
/// into granule by granule ("expandable"). All its blocks are of one stream. Under the allocator's
/// lock.
struct Slab : boost::intrusive::list_base_hook<> {
    std::byte* base = nullptr;
    std::size_t bytes = 0;       // of addresses
    std::size_t held_bytes = 0;  // of memory: all, or what is mapped
    std::size_t free_bytes = 0;  // of that, in the sets
    Pool pool = Pool::small;
    StreamCache* home = nullptr;
    Block* first = nullptr;
    // Of an expandable one; a granule's handle is nullptr where nothing is mapped. Elements under a
    // `taken` block are its thread's, others under the allocator's lock.
    std::unique_ptr<MemoryHandle[]> granules;
    std::size_t granule = 0;
    HoleSet holes;

    bool is_expandable() const noexcept { return granule != 0; }
    bool is_empty_range() const noexcept {
        return is_expandable() && first->is(BlockState::hole) && first->bytes == bytes;
    }
    bool is_all_free() const noexcept { return free_bytes == held_bytes; }
    /// Free, but not to be given back in one piece.
    std::size_t split_bytes() const noexcept { return is_all_free() ? 0 : free_bytes; }
    MemoryHandle& granule_at(const std::byte* address) const noexcept {
        return granules[static_cast<std::size_t>(address - base) / granule];
    }
};

using SlabList = boost::intrusive::list<Slab>;

}  // namespace tensorpool::device
