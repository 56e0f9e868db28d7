#include "device/caching/failure_report.hpp"

namespace tensorpool {
namespace {

using base::BytesText;
using base::FixedText;
using Cause = DeviceAllocationFailure::Cause;

struct CauseText {
    const char* name;
    const char* explanation;
    const char* remedy;
};

// In the order of Cause.
constexpr CauseText cause_texts[] = {
    {"request", "the request exceeds the largest size of a block",
     "use smaller blocks; max_allocation and the size of the device limit them"},
    {"limit", "the limit of the allocator", "raise hard_limit, or keep fewer blocks in use"},
    {"budget", "the hard limit of a budget",
     "raise the limit of the budget that refused, or free what is charged to it"},
    {"fragmentation", "fragmentation: enough memory is free, but not in one piece",
     "use expandable slabs, or allocate large blocks before small ones"},
    {"own use", "memory in use by this allocator", "keep fewer blocks in use"},
    {"held back", "freed blocks that wait for other streams", "wait for those streams"},
    {"other processes", "other processes, which use the rest of the device",
     "end other processes on the device"},
    {"capture", "a capture in progress, during which no memory is given back",
     "call reserve_for_capture before the capture begins"},
    {"asleep", "the allocator sleeps", "call wake first"},
    {"device", "the device", "see the status"},
};
static_assert(std::size(cause_texts) == static_cast<std::size_t>(Cause::device) + 1);

const CauseText& text_of(Cause cause) noexcept {
    static constexpr CauseText unknown = {"?", "?", "?"};
    const auto index = static_cast<std::size_t>(cause);
    return index < std::size(cause_texts) ? cause_texts[index] : unknown;
}

}  // namespace

const char* to_string(Cause cause) noexcept {
    return text_of(cause).name;
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
    text.add("  cause: %s\n", text_of(failure.cause).explanation);
    text.add("  missing %s in one piece; remedy: %s", BytesText(failure.missing).c_str(),
             text_of(failure.cause).remedy);
    text.add("%s", failure.budgets);
}

DeviceAllocationError::~DeviceAllocationError() = default;

}  // namespace tensorpool
