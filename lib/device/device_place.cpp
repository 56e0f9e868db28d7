#include "device/device_place.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "statistics/segment.hpp"

namespace tensorpool::device {

using statistics::Counter;
using statistics::DeviceStreamCounters;
using statistics::DeviceTotals;

struct DevicePlace::State {
    DeviceStatistics identity;
    DeviceTotals totals = {};
    mutable std::mutex mutex;  // of the two lists
    std::deque<DeviceStreamCounters> streams;
    std::vector<DeviceStreamCounters*> ended;
};

DevicePlace::DevicePlace(std::string_view name, DeviceStatistics::Kind kind, Device device)
    : state_(std::make_unique<State>()) {
    DeviceStatistics& identity = state_->identity;
    name.copy(identity.name, sizeof identity.name - 1);
    to_string(device).copy(identity.device, sizeof identity.device - 1);
    identity.kind = kind;
    identity.id = statistics::segment().next_id();
}

DevicePlace::~DevicePlace() = default;

std::uint64_t DevicePlace::id() const noexcept {
    return state_->identity.id;
}

DeviceTotals& DevicePlace::totals() noexcept {
    return state_->totals;
}

DeviceStreamCounters& DevicePlace::add_stream(StreamHandle) {
    const std::lock_guard guard(state_->mutex);
    detail::add(state_->totals.streams, 1);
    if (state_->ended.empty()) return state_->streams.emplace_back();
    DeviceStreamCounters& again = *state_->ended.back();
    state_->ended.pop_back();
    return again;
}

void DevicePlace::end_stream(DeviceStreamCounters& stream) noexcept {
    const std::lock_guard guard(state_->mutex);
    detail::add(state_->totals.streams, ~std::uint64_t{0});
    state_->ended.push_back(&stream);
}

DeviceStatistics DevicePlace::figures() const noexcept {
    const auto read = [](const Counter& counter) {
        return counter.load(std::memory_order_relaxed);
    };
    DeviceStatistics figures = state_->identity;
    const std::lock_guard guard(state_->mutex);
    std::uint64_t requested_freed = 0;
    for (const DeviceStreamCounters& stream : state_->streams) {
        figures.deallocations += stream.deallocations.load(std::memory_order_acquire);
        figures.deallocated_bytes += stream.deallocated_bytes.load(std::memory_order_acquire);
        requested_freed += stream.deallocated_requested_bytes.load(std::memory_order_acquire);
    }
    for (const DeviceStreamCounters& stream : state_->streams) {
        figures.allocations += read(stream.allocations);
        figures.allocated_bytes += read(stream.allocated_bytes);
        figures.requested_bytes += read(stream.requested_bytes);
        figures.parked_hits += read(stream.parked_hits);
        figures.parked_bytes += read(stream.parked_bytes);
    }
    const DeviceTotals& totals = state_->totals;
    figures.in_use_bytes = figures.allocated_bytes - figures.deallocated_bytes;
    figures.requested_in_use_bytes = figures.requested_bytes - requested_freed;
    figures.deferred_bytes = read(totals.deferred_bytes);
    figures.capacity_bytes = read(totals.capacity_bytes);
    figures.peak_capacity_bytes = read(totals.peak_capacity_bytes);
    figures.peak_in_use_bytes = std::max(read(totals.peak_held_bytes), figures.in_use_bytes);
    figures.peak_active_bytes =
        std::max(read(totals.peak_active_bytes), figures.in_use_bytes + figures.deferred_bytes);
    figures.address_bytes = read(totals.address_bytes);
    figures.free_bytes =
        figures.capacity_bytes -
        std::min(figures.capacity_bytes, figures.in_use_bytes + figures.deferred_bytes);
    figures.split_bytes = read(totals.split_bytes);
    figures.captured_bytes = read(totals.captured_bytes);
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
    return figures;
}

}  // namespace tensorpool::device
