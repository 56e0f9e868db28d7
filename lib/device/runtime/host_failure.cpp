#include <tensorpool/device/device_allocation_error.hpp>

#include <algorithm>

#include "device/runtime/host_blocks.hpp"
#include "platform/platform.hpp"

namespace tensorpool::device {
namespace {

using Cause = DeviceAllocationFailure::Cause;

Cause cause_of(const DeviceAllocationFailure& failure) {
    if (failure.asked > failure.device_total) return Cause::request;
    // The system has the memory, so the source must have a limit of its own.
    if (failure.asked <= failure.device_free) return Cause::limit;
    return failure.capacity >= failure.other_processes ? Cause::own_use : Cause::other_processes;
}

}  // namespace

void HostBlocks::fail(std::size_t bytes) {
    {
        const std::lock_guard guard(mutex_);
        detail::add(record_.totals().failures, 1);
    }
    const DeviceStatistics now = statistics();
    DeviceAllocationFailure failure;
    failure.device = device_;
    std::copy(std::begin(now.name), std::end(now.name), std::begin(failure.allocator));
    failure.asked = bytes;
    failure.in_use = now.in_use_bytes;
    failure.capacity = now.capacity_bytes;
    failure.held_back = now.deferred_bytes;
    failure.device_free = platform::available_memory();
    failure.device_total = platform::total_memory();
    failure.other_processes =
        failure.device_total -
        std::min(failure.device_total, failure.device_free + failure.capacity);
    failure.cause = cause_of(failure);
    failure.missing = bytes > failure.device_free ? bytes - failure.device_free : bytes;
    throw DeviceAllocationError(failure);
}

}  // namespace tensorpool::device
