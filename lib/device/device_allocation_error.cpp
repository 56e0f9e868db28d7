#include <tensorpool/device/device_allocation_error.hpp>

#include "base/text.hpp"

namespace tensorpool {
namespace {

using base::BytesText;
using base::FixedText;
using Cause = DeviceAllocationFailure::Cause;

const char* explanation(Cause cause) noexcept {
    switch (cause) {
        case Cause::request:
            return "the request exceeds the largest size of a block";
        case Cause::limit:
            return "the limit of the allocator";
        case Cause::budget:
            return "the hard limit of a budget";
        case Cause::fragmentation:
            return "fragmentation: enough memory is free, but not in one piece";
        case Cause::own_use:
            return "memory in use by this allocator";
        case Cause::held_back:
            return "freed blocks that wait for other streams";
        case Cause::other_processes:
            return "other processes, which use the rest of the device";
        case Cause::capture:
            return "a capture in progress, during which no memory is given back";
        case Cause::asleep:
            return "the allocator sleeps";
        case Cause::device:
            return "the device";
    }
    return "?";
}

const char* remedy(Cause cause) noexcept {
    switch (cause) {
        case Cause::request:
            return "use smaller blocks; max_allocation and the size of the device limit them";
        case Cause::limit:
            return "raise hard_limit, or keep fewer blocks in use";
        case Cause::budget:
            return "raise the limit of the budget that refused, or free what is charged to it";
        case Cause::fragmentation:
            return "use expandable slabs, or allocate large blocks before small ones";
        case Cause::own_use:
            return "keep fewer blocks in use";
        case Cause::held_back:
            return "wait for those streams";
        case Cause::other_processes:
            return "end other processes on the device";
        case Cause::capture:
            return "call reserve_for_capture before the capture begins";
        case Cause::asleep:
            return "call wake first";
        case Cause::device:
            return "see the status";
    }
    return "?";
}

}  // namespace

const char* to_string(Cause cause) noexcept {
    switch (cause) {
        case Cause::request:
            return "request";
        case Cause::limit:
            return "limit";
        case Cause::budget:
            return "budget";
        case Cause::fragmentation:
            return "fragmentation";
        case Cause::own_use:
            return "own use";
        case Cause::held_back:
            return "held back";
        case Cause::other_processes:
            return "other processes";
        case Cause::capture:
            return "capture";
        case Cause::asleep:
            return "asleep";
        case Cause::device:
            return "device";
    }
    return "?";
}

DeviceAllocationError::DeviceAllocationError(const DeviceAllocationFailure& failure) noexcept
    : failure_(failure) {
    FixedText text(text_, sizeof text_);
    text.add("tensorpool: %.47s on %s:%d: allocate: %zu B (%s) requested: %s\n", failure.allocator,
             to_string(failure.device.type), failure.device.index, failure.asked,
             BytesText(failure.asked).c_str(), to_string(failure.status));
    text.add("  in use %s, held in slabs %s", BytesText(failure.in_use).c_str(),
             BytesText(failure.capacity).c_str());
    if (failure.captured != 0) {
        text.add(", %s of it by graphs", BytesText(failure.captured).c_str());
    }
    text.add("\n  free in slabs %s in %zu blocks, the largest %s\n",
             BytesText(failure.free).c_str(), failure.free_blocks,
             BytesText(failure.largest_free).c_str());
    if (failure.held_back != 0) {
        text.add("  freed but held back %s", BytesText(failure.held_back).c_str());
        for (std::size_t i = 0; i < failure.holder_count; ++i) {
            text.add("%s stream %p (%s)", i == 0 ? " by" : ",",
                     static_cast<const void*>(failure.holders[i].stream),
                     BytesText(failure.holders[i].bytes).c_str());
        }
        text.add("\n");
    }
    if (failure.waited_ns != 0) {
        text.add("  waited %.3f ms for copies that hold freed blocks back\n",
                 static_cast<double>(failure.waited_ns) / 1e6);
    }
    if (failure.device_total != 0) {
        text.add("  the device has %s, free %s, used by other processes %s\n",
                 BytesText(failure.device_total).c_str(), BytesText(failure.device_free).c_str(),
                 BytesText(failure.other_processes).c_str());
    }
    if (failure.limit != 0) text.add("  hard limit %s\n", BytesText(failure.limit).c_str());
    if (failure.callbacks[0] != '\0') text.add("  callbacks: %s\n", failure.callbacks);
    text.add("  cause: %s\n", explanation(failure.cause));
    text.add("  missing %s in one piece; remedy: %s", BytesText(failure.missing).c_str(),
             remedy(failure.cause));
    text.add("%s", failure.budgets);
}

DeviceAllocationError::~DeviceAllocationError() = default;

}  // namespace tensorpool
