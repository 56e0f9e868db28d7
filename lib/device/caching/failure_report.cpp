#include "device/caching/failure_report.hpp"

#include <algorithm>
#include <iterator>

#include "device/caching/stream_cache.hpp"
#include "device/call_errors.hpp"
#include "events/misuse.hpp"

namespace tensorpool::device {
namespace {

using Cause = FailureReport::Cause;

/// Returns the cause if the allocator would need more than `room` from its device.
Cause cause_of_shortage(const DeviceAllocationFailure& failure, std::size_t room) noexcept {
    if (failure.free + room >= failure.asked) return Cause::fragmentation;
    const std::size_t lacking = failure.asked - failure.free - room;
    if (failure.held_back >= lacking) return Cause::held_back;
    const bool others = failure.other_processes >= lacking &&
                        failure.other_processes > failure.in_use + failure.captured;
    return others ? Cause::other_processes : Cause::own_use;
}

const char* state_text(BlockState state) noexcept {
    using enum BlockState;
    if (state == in_use || state == shared) return "begins elsewhere";
    if (state == scalars) return "holds scalars, but none in use begins there";
    const bool waits = state == leaving || state == deferred;
    return waits ? "was freed already and waits for streams" : "is free already";
}

}  // namespace

FailureReport::FailureReport(DeviceAllocationFailure& failure, const std::string& allocator,
                             Device device, const DeviceStatistics& statistics,
                             std::size_t limit) noexcept
    : failure_(failure) {
    failure = {};
    failure.device = device;
    allocator.copy(failure.allocator, sizeof failure.allocator - 1);
    failure.in_use = static_cast<std::size_t>(statistics.in_use_bytes);
    failure.capacity = static_cast<std::size_t>(statistics.capacity_bytes);
    failure.free = static_cast<std::size_t>(statistics.free_bytes);
    failure.free_blocks = static_cast<std::size_t>(statistics.free_blocks);
    failure.held_back = static_cast<std::size_t>(statistics.deferred_bytes);
    failure.captured = static_cast<std::size_t>(statistics.captured_bytes);
    failure.limit = limit;
}

void FailureReport::add_free(const StreamCache& cache) noexcept {
    for (const FreeSet& set : cache.memory.free) {
        if (!set.empty())
            failure_.largest_free = std::max(failure_.largest_free, set.rbegin()->bytes);
    }
}

void FailureReport::add_budgets(const limits::BudgetRequest& request) noexcept {
    base::FixedText text(failure_.budgets, sizeof failure_.budgets);
    request.describe(text);
}

void FailureReport::add_device(std::size_t free_bytes, std::size_t total_bytes) noexcept {
    failure_.device_free = free_bytes;
    failure_.device_total = total_bytes;
    failure_.other_processes = total_bytes - std::min(total_bytes, free_bytes + failure_.capacity);
}

void FailureReport::add_device(Backend& backend) noexcept {
    DeviceMemoryInfo info;
    if (backend.memory_info(failure_.device.index, info) == DeviceStatus::ok) {
        add_device(info.free_bytes, info.total_bytes);
    }
}

/// Keeps the streams that hold back the most bytes, the largest first.
void FailureReport::add_holder(const StreamCache& cache) noexcept {
    constexpr std::size_t most = DeviceAllocationFailure::max_streams;
    const auto bytes = static_cast<std::size_t>(cache.memory.queue.bytes);
    if (bytes == 0) return;
    std::size_t at = failure_.holder_count < most ? failure_.holder_count++ : most - 1;
    if (at == most - 1 && failure_.holders[at].bytes >= bytes) return;
    failure_.holders[at] = {cache.stream(), bytes};
    for (; at > 0 && failure_.holders[at - 1].bytes < failure_.holders[at].bytes; --at) {
        std::swap(failure_.holders[at - 1], failure_.holders[at]);
    }
}

void FailureReport::judge(std::size_t requested, DeviceStatus status, Cause cause,
                          Room certainty) noexcept {
    failure_.asked = requested;
    failure_.status = status;
    failure_.cause = cause;
    std::size_t room = failure_.device_free;
    if (failure_.limit != 0) {
        room = std::min(room, failure_.limit - std::min(failure_.limit, failure_.capacity));
    }
    failure_.missing = requested - std::min(requested, std::max(room, failure_.largest_free));
    if (cause == Cause::limit) {
        const Cause shortage = cause_of_shortage(failure_, room);
        const bool is_held_back = shortage == Cause::held_back && certainty == Room::unknown;
        if (shortage == Cause::fragmentation || is_held_back) failure_.cause = shortage;
    } else if (cause == Cause::own_use) {
        const bool is_memory = status == DeviceStatus::out_of_memory;
        // If the device has no memory and the allocator holds none, the allocator is not the cause.
        const bool is_its = certainty == Room::certain || failure_.in_use != 0;
        if (!is_memory || !is_its) {
            failure_.cause = Cause::device;
        } else if (certainty == Room::certain) {
            failure_.cause = cause_of_shortage(failure_, room);
        }
    }
}

EntryKind FailureReport::entry() const noexcept {
    const bool own = failure_.cause == Cause::limit || failure_.cause == Cause::budget ||
                     failure_.cause == Cause::request;
    return own ? EntryKind::limit : EntryKind::failure;
}

LimitKind FailureReport::limit() const noexcept {
    if (failure_.cause == Cause::limit || failure_.cause == Cause::budget) {
        return LimitKind::capacity;
    }
    return failure_.cause == Cause::request ? LimitKind::request : LimitKind::memory;
}

void throw_failure(const DeviceAllocationFailure& failure, Backend& backend) {
    const bool is_memory =
        failure.status == DeviceStatus::out_of_memory || failure.cause == Cause::capture;
    if (is_memory) throw DeviceAllocationError(failure);
    throw_error(failure.status, failure.allocator, failure.device, "allocate",
                std::to_string(failure.asked) + " B", backend);
}

void fail_free(const std::string& allocator, Device device, const void* address,
               const Block* block) noexcept {
    const std::string owner = allocator + " on " + to_string(device);
    if (block == nullptr) {
        events::stop_at_misuse(
            {.kind = events::MisuseKind::foreign_free, .pointer = address, .owner = allocator},
            "%s: deallocate: %p is not a block of this allocator", owner.c_str(), address);
    }
    const bool is_start = address == block->address;
    events::stop_at_misuse(
        {.kind = is_start ? events::MisuseKind::double_free : events::MisuseKind::interior_free,
         .pointer = address,
         .size = block->bytes,
         .owner = allocator},
        "%s: deallocate: %p: the block of %zu B at %p %s", owner.c_str(), address, block->bytes,
        static_cast<const void*>(block->address),
        state_text(block->state.load(std::memory_order_relaxed)));
}

void throw_not_in_use(const std::string& allocator, Device device, const char* call,
                      const void* address) {
    char text[160];
    std::snprintf(text, sizeof text, "tensorpool: %.47s on %s: %s: %p is not a block in use",
                  allocator.c_str(), to_string(device).c_str(), call, address);
    throw DeviceError(DeviceStatus::invalid_argument, text);
}

}  // namespace tensorpool::device

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
