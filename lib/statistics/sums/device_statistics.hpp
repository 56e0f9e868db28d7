#pragma once

#include <cstdint>

#include <tensorpool/device_statistics.hpp>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Adds up what the streams of one device allocator did. All frees come before all allocations, so
/// that nothing reads as freed that does not read as allocated.
class DeviceSums {
public:
    void add_frees(const DeviceStreamCounters& stream) noexcept;
    void add_allocations(const DeviceStreamCounters& stream) noexcept;

    /// The figures of the allocator, for itself and for who reads its segment. Whatever the words
    /// are, none of these is more than another that contains it.
    DeviceStatistics with(const DeviceRecord& device) const noexcept;

private:
    DeviceStatistics sums_;  // what the streams count
    std::uint64_t deallocated_requested_bytes_ = 0;
};

}  // namespace tensorpool::statistics
