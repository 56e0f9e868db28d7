#pragma once

#include <cstdint>

#include <tensorpool/device_statistics.hpp>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Sums what the streams of one device allocator did. All frees must be added before all
/// allocations, so that no block reads as freed that does not read as allocated.
class DeviceSums {
public:
    void add_frees(const DeviceStreamCounters& stream) noexcept;
    void add_allocations(const DeviceStreamCounters& stream) noexcept;

    /// Returns the statistics of the allocator, for the process itself and for readers of its
    /// segment. Even if the records were overwritten, no value exceeds another that includes it.
    DeviceStatistics with(const DeviceRecord& device) const noexcept;

private:
    DeviceStatistics sums_;  // what the streams count
    std::uint64_t deallocated_requested_bytes_ = 0;
};

}  // namespace tensorpool::statistics
