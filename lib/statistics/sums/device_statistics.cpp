#include "statistics/sums/device_statistics.hpp"

#include <algorithm>

#include "statistics/segment/name.hpp"
#include "statistics/sums/counter_words.hpp"

namespace tensorpool::statistics {
namespace {

using Kind = DeviceStatistics::Kind;

void add_identity(DeviceStatistics& statistics, const DeviceRecord& device) noexcept {
    statistics.id = read(device.id);
    load_name(device.name, statistics.name);
    load_text(device.device, statistics.device);
    // Another process may have overwritten the record.
    statistics.kind =
        static_cast<Kind>(std::min(read(device.kind), static_cast<std::uint64_t>(Kind::host)));
}

/// Limits each part to the value that includes it.
void bound_parts(DeviceStatistics& statistics) noexcept {
    const auto bound = [](std::uint64_t& part, std::uint64_t whole) {
        part = std::min(part, whole);
    };
    bound(statistics.deallocations, statistics.allocations);
    bound(statistics.deallocated_bytes, statistics.allocated_bytes);
    bound(statistics.parked_hits, statistics.allocations);
    bound(statistics.in_use_bytes, statistics.capacity_bytes);
    bound(statistics.requested_in_use_bytes, statistics.in_use_bytes);
    const std::uint64_t not_in_use = statistics.capacity_bytes - statistics.in_use_bytes;
    bound(statistics.deferred_bytes, not_in_use);
    statistics.free_bytes = not_in_use - statistics.deferred_bytes;
    bound(statistics.split_bytes, statistics.free_bytes);
    bound(statistics.parked_bytes, statistics.free_bytes);
    bound(statistics.captured_bytes, statistics.capacity_bytes);
}

/// Limits each peak to at least its current value and at most the peak of the value that includes
/// it.
void bound_peaks(DeviceStatistics& statistics) noexcept {
    statistics.peak_capacity_bytes =
        std::max(statistics.peak_capacity_bytes, statistics.capacity_bytes);
    statistics.peak_active_bytes = std::clamp(statistics.peak_active_bytes,
                                              statistics.in_use_bytes + statistics.deferred_bytes,
                                              statistics.peak_capacity_bytes);
    statistics.peak_in_use_bytes = std::clamp(statistics.peak_in_use_bytes, statistics.in_use_bytes,
                                              statistics.peak_active_bytes);
}

}  // namespace

void DeviceSums::add_frees(const DeviceStreamCounters& stream) noexcept {
    add_counters(sums_, stream, Reading::first);
    // Pairs with the release store of `add_release`.
    deallocated_requested_bytes_ +=
        stream.deallocated_requested_bytes.load(std::memory_order_acquire);
}

void DeviceSums::add_allocations(const DeviceStreamCounters& stream) noexcept {
    add_counters(sums_, stream, Reading::second);
}

DeviceStatistics DeviceSums::with(const DeviceRecord& device) const noexcept {
    DeviceStatistics statistics = sums_;
    add_identity(statistics, device);
    add_counters(statistics, device.totals, Reading::second);
    statistics.in_use_bytes = above(statistics.allocated_bytes, statistics.deallocated_bytes);
    statistics.requested_in_use_bytes =
        above(statistics.requested_bytes, deallocated_requested_bytes_);
    bound_parts(statistics);
    bound_peaks(statistics);
    return statistics;
}

}  // namespace tensorpool::statistics
