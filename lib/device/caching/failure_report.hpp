#pragma once

#include <tensorpool/device/device_allocation_error.hpp>

#include "device/caching/stream_cache.hpp"
#include "device/call_errors.hpp"
#include "events/misuse.hpp"
#include "events/timeline.hpp"
#include "limits/budget_request.hpp"

namespace tensorpool::device {

/// Returns the cause if the allocator would need more than `room` from its device.
inline DeviceAllocationFailure::Cause cause_of_shortage(const DeviceAllocationFailure& failure,
                                                        std::size_t room) noexcept {
    if (failure.free + room >= failure.asked) return DeviceAllocationFailure::Cause::fragmentation;
    const std::size_t lacking = failure.asked - failure.free - room;
    if (failure.held_back >= lacking) return DeviceAllocationFailure::Cause::held_back;
    const bool others = failure.other_processes >= lacking &&
                        failure.other_processes > failure.in_use + failure.captured;
    return others ? DeviceAllocationFailure::Cause::other_processes
                  : DeviceAllocationFailure::Cause::own_use;
}

inline const char* state_text(BlockState state) noexcept {
    using enum BlockState;
    if (state == in_use || state == shared) return "begins elsewhere";
    if (state == scalars) return "holds scalars, but none in use begins there";
    const bool waits = state == leaving || state == deferred;
    return waits ? "was freed already and waits for streams" : "is free already";
}

/// Collects why a request of a caching or pinned allocator failed, under the allocator's lock.
/// `judge` is called last.
class FailureReport {
public:
    using Cause = DeviceAllocationFailure::Cause;

    /// Fills in what the allocator holds.
    FailureReport(DeviceAllocationFailure& failure, const std::string& allocator, Device device,
                  const DeviceStatistics& statistics, std::size_t limit) noexcept
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

    void add_free(const StreamCache& cache) noexcept {
        for (const FreeSet& set : cache.memory.free) {
            if (!set.empty())
                failure_.largest_free = std::max(failure_.largest_free, set.rbegin()->bytes);
        }
    }
    /// Adds a stream that holds back freed blocks.
    /// Keeps the streams that hold back the most bytes, the largest first.
    void add_holder(const StreamCache& cache) noexcept {
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
    /// Adds the levels of the budget that refused, if one did.
    void add_budgets(const limits::BudgetRequest& request) noexcept {
        base::FixedText text(failure_.budgets, sizeof failure_.budgets);
        request.describe(text);
    }
    void add_device(std::size_t free_bytes, std::size_t total_bytes) noexcept {
        failure_.device_free = free_bytes;
        failure_.device_total = total_bytes;
        failure_.other_processes =
            total_bytes - std::min(total_bytes, free_bytes + failure_.capacity);
    }
    void add_device(Backend& backend) noexcept {
        DeviceMemoryInfo info;
        if (backend.memory_info(failure_.device.index, info) == DeviceStatus::ok) {
            add_device(info.free_bytes, info.total_bytes);
        }
    }
    /// Whether the allocator can obtain all memory that the device reports as free.
    enum class Room { certain, unknown };
    void judge(std::size_t requested, DeviceStatus status, Cause cause, Room certainty) noexcept {
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
            // If the device has no memory and the allocator holds none, the allocator is not the
            // cause.
            const bool is_its = certainty == Room::certain || failure_.in_use != 0;
            if (!is_memory || !is_its) {
                failure_.cause = Cause::device;
            } else if (certainty == Room::certain) {
                failure_.cause = cause_of_shortage(failure_, room);
            }
        }
    }

    EntryKind entry() const noexcept {
        const bool own = failure_.cause == Cause::limit || failure_.cause == Cause::budget ||
                         failure_.cause == Cause::request;
        return own ? EntryKind::limit : EntryKind::failure;
    }
    LimitKind limit() const noexcept {
        if (failure_.cause == Cause::limit || failure_.cause == Cause::budget) {
            return LimitKind::capacity;
        }
        return failure_.cause == Cause::request ? LimitKind::request : LimitKind::memory;
    }

private:
    DeviceAllocationFailure& failure_;
};

/// Throws DeviceAllocationError for a lack of memory, and DeviceError with the backend's text for
/// any other failure.
[[noreturn]] inline void throw_failure(const DeviceAllocationFailure& failure, Backend& backend) {
    const bool is_memory = failure.status == DeviceStatus::out_of_memory ||
                           failure.cause == DeviceAllocationFailure::Cause::capture;
    if (is_memory) throw DeviceAllocationError(failure);
    throw_error(failure.status, failure.allocator, failure.device, "allocate",
                std::to_string(failure.asked) + " B", backend);
}

/// Ends the process because `address` is not a block that can be freed. `block` is the block found
/// at the address, or nullptr.
[[noreturn]] inline void fail_free(const std::string& allocator, Device device, const void* address,
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
/// Throws DeviceError because `address` is not a block in use.
[[noreturn]] inline void throw_not_in_use(const std::string& allocator, Device device,
                                          const char* call, const void* address) {
    char text[160];
    std::snprintf(text, sizeof text, "tensorpool: %.47s on %s: %s: %p is not a block in use",
                  allocator.c_str(), to_string(device).c_str(), call, address);
    throw DeviceError(DeviceStatus::invalid_argument, text);
}

}  // namespace tensorpool::device
