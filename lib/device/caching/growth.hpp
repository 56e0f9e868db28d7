#pragma once

#include "device/caching/reclaim.hpp"

namespace tensorpool::device {

/// Growth on devices with virtual memory: maps granules where a request finds room between blocks,
/// lowest addresses first. Granules come from free blocks with no pending work if new ones would
/// exceed the goal or the limit, and otherwise from the device.
class ExpandableSlabs {
public:
    ExpandableSlabs(AllocatorState& state, Reclaim& reclaim) noexcept
        : state_(state), reclaim_(reclaim) {}

    Outcome grow(StreamCache& cache, const Request& request);
    /// Unmaps a slab and releases its addresses, whatever is in it.
    void end(Slab& slab) noexcept;

private:
    struct Granules;

    BlockHeap::Run find_run(StreamCache& cache, const Request& request, DeviceStatus& status);
    Slab* take_empty_range(StreamCache& cache, const Request& request) noexcept;
    Slab* add_range(StreamCache& cache, const Request& request, DeviceStatus& status);
    DeviceStatus reserve_addresses(std::size_t least, std::size_t granule, std::size_t& bytes,
                                   void*& address) noexcept;

    Outcome map_run(const BlockHeap::Run& run, const Request& request, bool all);
    std::size_t bytes_to_move(std::size_t missing, const Request& request, bool all) const noexcept;
    DeviceStatus move(Granules& granules) noexcept;
    bool is_available(std::size_t bytes, std::size_t granule) noexcept;
    void unmap(Granules& granules) noexcept;
    DeviceStatus create_missing(Granules& granules) noexcept;
    DeviceStatus map_missing(Granules& granules) noexcept;
    void undo(Granules& granules) noexcept;
    void settle(const Granules& granules) noexcept;

    AllocatorState& state_;
    Reclaim& reclaim_;
};

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
