#pragma once

#include <cstddef>

#include "device/caching/allocator_state.hpp"
#include "device/caching/expandable_slabs.hpp"
#include "device/caching/reclaim.hpp"
#include "device/caching/streams/captures.hpp"

namespace tensorpool::device {

/// Growth by slabs that other processes can open. Each is one block with one granule, because a
/// descriptor opens all of a granule, and none is cut or handed out again.
class ShareableSlabs {
public:
    explicit ShareableSlabs(AllocatorState& state) noexcept : state_(state) {}

    Outcome grow(StreamCache& cache, const Request& request);

private:
    struct Memory;

    DeviceStatus obtain(Memory& memory) noexcept;
    Block* add_slab(StreamCache& cache, const Memory& memory);

    AllocatorState& state_;
};

/// Obtains memory from the device for one request: granules of expandable slabs, or slabs of fixed
/// size.
class Growth {
public:
    Growth(AllocatorState& state, Reclaim& reclaim, Captures& captures) noexcept
        : state_(state),
          reclaim_(reclaim),
          captures_(captures),
          expandable_(state, reclaim),
          shareable_(state) {}

    /// Returns a block of new memory. Throws std::bad_alloc.
    Outcome grow(StreamCache& cache, const Request& request);
    /// Allocates a slab for later captures. The outcome has no block.
    Outcome reserve(const Request& request);
    /// Releases all slabs of a stream, whatever is in them, when the allocator is destroyed. The
    /// records of their blocks are destroyed with the heap.
    void end_slabs(StreamCache& cache) noexcept;

private:
    Outcome grow_by_slab(StreamCache& cache, const Request& request);
    Outcome grow_by_bytes(StreamCache& cache, const Request& request, std::size_t bytes);
    Outcome add_slab(StreamCache& cache, const Request& request, std::size_t bytes);
    void keep_slab(StreamCache& cache, Pool pool, void* memory, std::size_t bytes);

    AllocatorState& state_;
    Reclaim& reclaim_;
    Captures& captures_;
    ExpandableSlabs expandable_;
    ShareableSlabs shareable_;
};

}  // namespace tensorpool::device
