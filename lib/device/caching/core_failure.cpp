#include <algorithm>

#include "device/caching/caching_core.hpp"
#include "statistics/segment/limit_kind.hpp"

// Why a request failed.

namespace tensorpool::device {
namespace {

std::size_t read(const statistics::Counter& counter) noexcept {
    return static_cast<std::size_t>(counter.load(std::memory_order_relaxed));
}

using Cause = DeviceAllocationFailure::Cause;

/// Of a device that has no more memory to give.
Cause cause_of_shortage(const DeviceAllocationFailure& failure, std::size_t room) noexcept {
    if (failure.free + room >= failure.asked) return Cause::fragmentation;
    const std::size_t lacking = failure.asked - failure.free - room;
    if (failure.held_back >= lacking) return Cause::held_back;
    const bool others = failure.other_processes >= lacking &&
                        failure.other_processes > failure.in_use + failure.captured;
    return others ? Cause::other_processes : Cause::own_use;
}

}  // namespace

void CachingCore::count_holders(DeviceAllocationFailure& failure) const noexcept {
    constexpr std::size_t most = DeviceAllocationFailure::most_streams;
    for (const auto& cache : caches_) {
        const std::size_t bytes = cache->memory.waiting_bytes;
        if (bytes == 0) continue;
        std::size_t at = failure.holder_count < most ? failure.holder_count++ : most - 1;
        if (at == most - 1 && failure.holders[at].bytes >= bytes) continue;
        failure.holders[at] = {cache->stream(), bytes};
        while (at > 0 && failure.holders[at - 1].bytes < failure.holders[at].bytes) {
            std::swap(failure.holders[at - 1], failure.holders[at]);
            --at;
        }
    }
}

/// Under the lock: what is free is what the sets hold, and what streams have parked.
void CachingCore::explain(const Outcome& outcome, const Request& request,
                          DeviceAllocationFailure& failure) {
    const DeviceStatistics figures = place_.figures();
    failure = {};
    failure.status = outcome.status;
    failure.device = device();
    options_.name.copy(failure.allocator, sizeof failure.allocator - 1);
    failure.asked = request.bytes;
    failure.in_use = static_cast<std::size_t>(figures.in_use_bytes);
    failure.capacity = static_cast<std::size_t>(figures.capacity_bytes);
    failure.free = static_cast<std::size_t>(figures.free_bytes);
    failure.free_blocks = static_cast<std::size_t>(figures.free_blocks);
    failure.held_back = static_cast<std::size_t>(figures.deferred_bytes);
    failure.captured = read(totals_.captured_bytes);
    failure.limit = hard_limit_;
    for (const auto& cache : caches_) {
        for (const FreeSet& set : cache->memory.free) {
            if (!set.empty())
                failure.largest_free = std::max(failure.largest_free, set.rbegin()->bytes);
        }
    }
    count_holders(failure);
    DeviceMemoryInfo info;
    if (backend_.memory_info(device_, info) == DeviceStatus::ok) {
        failure.device_free = info.free_bytes;
        failure.device_total = info.total_bytes;
        const std::size_t known = info.free_bytes + failure.capacity;
        failure.other_processes = info.total_bytes - std::min(info.total_bytes, known);
    }
    std::size_t room = failure.device_free;
    if (hard_limit_ != 0) {
        room = std::min(room, hard_limit_ - std::min(hard_limit_, failure.capacity));
    }
    failure.missing = request.bytes - std::min(request.bytes, std::max(room, failure.largest_free));
    failure.cause = outcome.cause;
    if (outcome.cause == Cause::limit && failure.free + room >= failure.asked) {
        failure.cause = Cause::fragmentation;
    } else if (outcome.cause == Cause::own_use) {
        const bool memory = outcome.status == DeviceStatus::out_of_memory;
        failure.cause = memory ? cause_of_shortage(failure, room) : Cause::device;
    }
    const bool own = failure.cause == Cause::limit || failure.cause == Cause::request;
    detail::add(totals_.failures, 1);
    watch_.refused(request.bytes);
    watch_.write(own ? EntryKind::limit : EntryKind::failure, request.bytes,
                 failure.cause == Cause::limit     ? LimitKind::capacity
                 : failure.cause == Cause::request ? LimitKind::request
                                                   : LimitKind::memory);
}

void CachingCore::refuse(const DeviceAllocationFailure& failure) {
    if (failure.cause != Cause::device) throw DeviceAllocationError(failure);
    throw DeviceError(failure.status,
                      "tensorpool: " + options_.name + " on " + to_string(device()) +
                          ": allocate: " + std::to_string(failure.asked) +
                          " B: " + to_string(failure.status) + ": " + backend_.last_error());
}

}  // namespace tensorpool::device
