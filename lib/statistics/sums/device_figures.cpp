#include "statistics/sums/device_figures.hpp"

#include <algorithm>

#include "statistics/segment/name.hpp"

namespace tensorpool::statistics {
namespace {

using Kind = DeviceStatistics::Kind;

// Relaxed: each is a figure of its own. Frees are read with acquire.
std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}
// Pairs with the release store of `add_release`.
std::uint64_t read_first(const Counter& counter) noexcept {
    return counter.load(std::memory_order_acquire);
}

std::uint64_t above(std::uint64_t a, std::uint64_t b) noexcept {
    return a > b ? a - b : 0;
}

void add_identity(DeviceStatistics& figures, const DeviceRecord& device) noexcept {
    figures.id = read(device.id);
    load_name(device.name, figures.name);
    load_text(device.device, figures.device);
    // Another process may have scribbled there.
    figures.kind =
        static_cast<Kind>(std::min(read(device.kind), static_cast<std::uint64_t>(Kind::host)));
}

void add_counts(DeviceStatistics& figures, const DeviceTotals& totals) noexcept {
    figures.address_bytes = read(totals.address_bytes);
    figures.limit_bytes = read(totals.limit_bytes);
    figures.soft_limit_bytes = read(totals.soft_limit_bytes);
    figures.slabs = read(totals.slabs);
    figures.free_blocks = read(totals.free_blocks);
    figures.deferred_blocks = read(totals.deferred_blocks);
    figures.streams = read(totals.streams);
    figures.free_hits = read(totals.free_hits);
    figures.growths = read(totals.growths);
    figures.grown_bytes = read(totals.grown_bytes);
    figures.give_backs = read(totals.give_backs);
    figures.given_back_bytes = read(totals.given_back_bytes);
    figures.cross_stream_uses = read(totals.cross_stream_uses);
    figures.events = read(totals.events);
    figures.synchronizations = read(totals.synchronizations);
    figures.pressures = read(totals.pressures);
    figures.failures = read(totals.failures);
}

/// Where the bytes of the slabs are. What is in use is there already.
void add_places(DeviceStatistics& figures, const DeviceTotals& totals,
                std::uint64_t parked_bytes) noexcept {
    figures.capacity_bytes = read(totals.capacity_bytes);
    figures.in_use_bytes = std::min(figures.in_use_bytes, figures.capacity_bytes);
    figures.requested_in_use_bytes = std::min(figures.requested_in_use_bytes, figures.in_use_bytes);
    const std::uint64_t not_in_use = figures.capacity_bytes - figures.in_use_bytes;
    figures.deferred_bytes = std::min(read(totals.deferred_bytes), not_in_use);
    figures.free_bytes = not_in_use - figures.deferred_bytes;
    figures.split_bytes = std::min(read(totals.split_bytes), figures.free_bytes);
    figures.parked_bytes = std::min(parked_bytes, figures.free_bytes);
    figures.captured_bytes = std::min(read(totals.captured_bytes), figures.capacity_bytes);
}

/// Never below what they are the peaks of, nor above the peak of what contains that.
void add_peaks(DeviceStatistics& figures, const DeviceTotals& totals) noexcept {
    figures.peak_capacity_bytes =
        std::max(read(totals.peak_capacity_bytes), figures.capacity_bytes);
    figures.peak_active_bytes =
        std::clamp(read(totals.peak_active_bytes), figures.in_use_bytes + figures.deferred_bytes,
                   figures.peak_capacity_bytes);
    figures.peak_in_use_bytes =
        std::clamp(read(totals.peak_held_bytes), figures.in_use_bytes, figures.peak_active_bytes);
}

}  // namespace

void DeviceSums::add_frees(const DeviceStreamCounters& stream) noexcept {
    deallocations_ += read_first(stream.deallocations);
    deallocated_bytes_ += read_first(stream.deallocated_bytes);
    deallocated_requested_bytes_ += read_first(stream.deallocated_requested_bytes);
}

void DeviceSums::add_allocations(const DeviceStreamCounters& stream) noexcept {
    allocations_ += read(stream.allocations);
    requested_bytes_ += read(stream.requested_bytes);
    allocated_bytes_ += read(stream.allocated_bytes);
    parked_hits_ += read(stream.parked_hits);
    parked_bytes_ += read(stream.parked_bytes);
}

DeviceStatistics DeviceSums::with(const DeviceRecord& device) const noexcept {
    DeviceStatistics figures;
    add_identity(figures, device);
    figures.allocations = allocations_;
    figures.deallocations = std::min(deallocations_, allocations_);
    figures.requested_bytes = requested_bytes_;
    figures.allocated_bytes = allocated_bytes_;
    figures.deallocated_bytes = std::min(deallocated_bytes_, allocated_bytes_);
    figures.parked_hits = std::min(parked_hits_, allocations_);
    figures.in_use_bytes = above(allocated_bytes_, deallocated_bytes_);
    figures.requested_in_use_bytes = above(requested_bytes_, deallocated_requested_bytes_);
    add_counts(figures, device.totals);
    add_places(figures, device.totals, parked_bytes_);
    add_peaks(figures, device.totals);
    return figures;
}

}  // namespace tensorpool::statistics
