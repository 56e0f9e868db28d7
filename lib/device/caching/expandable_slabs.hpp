#pragma once

#include <cstddef>

#include "device/caching/allocator_state.hpp"
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

}  // namespace tensorpool::device
