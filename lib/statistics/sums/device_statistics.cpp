#include "statistics/sums/device_statistics.hpp"

#include <algorithm>

#include "statistics/segment/name.hpp"
#include "statistics/sums/counter_words.hpp"

namespace tensorpool::statistics {
namespace {

using Kind = DeviceStatistics::Kind;

void add_identity(DeviceStatistics& figures, const DeviceRecord& device) noexcept {
    figures.id = read(device.id);
    load_name(device.name, figures.name);
    load_text(device.device, figures.device);
    // Another process may have overwritten the record.
    figures.kind =
        static_cast<Kind>(std::min(read(device.kind), static_cast<std::uint64_t>(Kind::host)));
}

/// Limits each part to the value that includes it.
void bound_parts(DeviceStatistics& figures) noexcept {
    const auto bound = [](std::uint64_t& part, std::uint64_t whole) {
        part = std::min(part, whole);
    };
    bound(figures.deallocations, figures.allocations);
    bound(figures.deallocated_bytes, figures.allocated_bytes);
    bound(figures.parked_hits, figures.allocations);
    bound(figures.in_use_bytes, figures.capacity_bytes);
    bound(figures.requested_in_use_bytes, figures.in_use_bytes);
    const std::uint64_t not_in_use = figures.capacity_bytes - figures.in_use_bytes;
    bound(figures.deferred_bytes, not_in_use);
    figures.free_bytes = not_in_use - figures.deferred_bytes;
    bound(figures.split_bytes, figures.free_bytes);
    bound(figures.parked_bytes, figures.free_bytes);
    bound(figures.captured_bytes, figures.capacity_bytes);
}

/// Limits each peak to at least its current value and at most the peak of the value that includes
/// it.
void bound_peaks(DeviceStatistics& figures) noexcept {
    figures.peak_capacity_bytes = std::max(figures.peak_capacity_bytes, figures.capacity_bytes);
    figures.peak_active_bytes =
        std::clamp(figures.peak_active_bytes, figures.in_use_bytes + figures.deferred_bytes,
                   figures.peak_capacity_bytes);
    figures.peak_in_use_bytes =
        std::clamp(figures.peak_in_use_bytes, figures.in_use_bytes, figures.peak_active_bytes);
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
    DeviceStatistics figures = sums_;
    add_identity(figures, device);
    add_counters(figures, device.totals, Reading::second);
    figures.in_use_bytes = above(figures.allocated_bytes, figures.deallocated_bytes);
    figures.requested_in_use_bytes = above(figures.requested_bytes, deallocated_requested_bytes_);
    bound_parts(figures);
    bound_peaks(figures);
    return figures;
}

}  // namespace tensorpool::statistics
