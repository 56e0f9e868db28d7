#include <thread>

#include "device/caching/failure_report.hpp"
#include "device/pinned/pinned_core.hpp"
#include "events/timeline.hpp"

// Allocation of slabs from the system, and their release.

namespace tensorpool::device {
namespace {

using std::chrono::nanoseconds;

// The time between two looks at copies that hold blocks back. It begins near the time of a short
// copy (4 KiB over PCIe 4 take some 10 us) and doubles up to a thousandth of the default wait.
constexpr nanoseconds shortest_pause = std::chrono::microseconds(10);
constexpr nanoseconds longest_pause = std::chrono::milliseconds(1);

/// Takes out a slab that is one free block, so that it can be released. Returns nullptr if there is
/// none.
Slab* take_free_slab(BlockHeap& heap, StreamCache& slabs) noexcept {
    for (Slab& slab : slabs.memory.slabs) {
        if (!slab.is_all_free()) continue;
        heap.take_out(*slab.first);
        return &slab;
    }
    return nullptr;
}

}  // namespace

Block* PinnedCore::take_free(const Request& request) {
    complete();
    Block* block = heap_.take_best(slabs_, request);
    if (block == nullptr) {
        flush();
        block = heap_.take_best(slabs_, request);
    }
    if (block != nullptr) detail::add(totals_.free_hits, 1);
    return block;
}

/// Waits before a request fails by the limit, as long as copies may free enough for it. Other
/// threads may allocate and free in the meantime, and take what the copies free.
PinnedCore::Outcome PinnedCore::obtain(const Request& request) {
    using Clock = std::chrono::steady_clock;
    Outcome outcome = obtain_now(request);
    if (outcome.block != nullptr || outcome.cause != Cause::limit) return outcome;
    Clock::time_point last = Clock::now();
    nanoseconds pause = shortest_pause;
    nanoseconds waited{0};
    while (outcome.block == nullptr && outcome.cause == Cause::limit &&
           waited < options_.pinned_wait && copies_may_free(request)) {
        {
            const Unlocked unlocked(mutex_);
            std::this_thread::sleep_for(pause);
        }
        outcome = obtain_now(request);
        // At least the pause has passed, even if the clock went back.
        const Clock::time_point now = Clock::now();
        waited += std::max<nanoseconds>(now - last, pause);
        last = now;
        pause = std::min(2 * pause, longest_pause);
    }
    outcome.waited = waited;
    return outcome;
}

/// Asks holders, without the lock, if a budget refused the request. Returns whether it may succeed
/// now.
bool PinnedCore::ask_holders(const Outcome& outcome, limits::BudgetRequest& budget) noexcept {
    if (outcome.block != nullptr || outcome.cause != Cause::budget) return false;
    const Unlocked unlocked(mutex_);
    return budget.may_retry();
}

/// Whether the memory that callers do not hold is enough for the request, and copies under way hold
/// some of it back.
bool PinnedCore::copies_may_free(const Request& request) const noexcept {
    const auto held = static_cast<std::size_t>(totals_.held_bytes.load(std::memory_order_relaxed));
    return held <= limit_ && request.rounded <= limit_ - held &&
           std::any_of(queues_.begin(), queues_.end(), [this](const auto& queue) {
               return deferred_.will_free(queue->memory.queue);
           });
}

PinnedCore::Outcome PinnedCore::obtain_now(const Request& request) {
    bool& growing = growing_[static_cast<std::size_t>(request.pool)];
    while (true) {
        if (Block* const block = take_free(request)) return {block, DeviceStatus::ok};
        if (!growing) break;
        wait_unlocked(grown_, mutex_);  // another thread's new slab may serve both requests
    }
    growing = true;
    // Ends the growth also if an exception is thrown.
    struct Growing {
        bool& flag;
        std::condition_variable& grown;
        ~Growing() {
            flag = false;
            grown.notify_all();
        }
    };
    const Growing ends = {growing, grown_};
    const Outcome outcome = grow(request);
    return outcome.block != nullptr ? outcome : under_pressure(request, outcome);
}

PinnedCore::Outcome PinnedCore::grow(const Request& request) {
    const auto held =
        static_cast<std::size_t>(totals_.capacity_bytes.load(std::memory_order_relaxed));
    const std::size_t least = min_slab(request);
    const std::size_t preferred = preferred_slab(request, held, options_.largest_slab);
    const Outcome outcome = grow_by(request, preferred);
    const bool may_do = outcome.status == DeviceStatus::out_of_memory && least < preferred;
    if (outcome.block != nullptr || !may_do) return outcome;
    return grow_by(request, least);
}

bool PinnedCore::may_grow(std::size_t bytes) const noexcept {
    if (limit_ == 0) return true;
    const auto held =
        static_cast<std::size_t>(totals_.capacity_bytes.load(std::memory_order_relaxed)) +
        growing_bytes_;
    return held <= limit_ && bytes <= limit_ - held;
}

PinnedCore::Outcome PinnedCore::grow_by(const Request& request, std::size_t bytes) {
    request.budget->clear();
    if (!may_grow(bytes)) return {nullptr, DeviceStatus::out_of_memory, Cause::limit};
    if (!budget_.charge(bytes, *request.budget)) {
        return {nullptr, DeviceStatus::out_of_memory, Cause::budget};
    }
    growing_bytes_ += bytes;
    void* memory = nullptr;
    DeviceStatus status = DeviceStatus::ok;
    {
        const Unlocked unlocked(mutex_);
        status = backend_.allocate_pinned(device_, bytes, &memory);
    }
    growing_bytes_ -= bytes;
    if (status != DeviceStatus::ok) {
        budget_.refund(bytes);
        return {nullptr, status,
                status == DeviceStatus::in_capture ? Cause::capture : Cause::own_use};
    }
    try {
        heap_.add_slab(slabs_, request.pool, static_cast<std::byte*>(memory), bytes);
    } catch (...) {
        (void)backend_.deallocate_pinned(device_, memory, bytes);
        budget_.refund(bytes);
        throw;
    }
    totals_.count_growth(bytes);
    record_.note_capacity();
    events::record(TraceAction::slab, record_.id(), memory, bytes);
    events::write_entry(EntryKind::growth, LimitKind::none, bytes, options_.name);
    return {heap_.take_best(slabs_, request), DeviceStatus::ok};
}

/// Releases free slabs to make room. If that fails, cuts a small block from a slab of large ones.
PinnedCore::Outcome PinnedCore::under_pressure(const Request& request, Outcome refused) {
    if (refused.status != DeviceStatus::out_of_memory) return refused;
    Outcome outcome = refused;
    (void)give_back();
    if (Block* const block = take_free(request)) {
        outcome = {block, DeviceStatus::ok};
    } else {
        outcome = grow_by(request, min_slab(request));
    }
    if (outcome.block == nullptr && request.pool == Pool::small) {
        const Request other = {request.bytes, base::align_up(request.rounded, large_grain),
                               Pool::large, 0};
        outcome.block = take_free(other);
    }
    if (outcome.block == nullptr) return outcome;
    detail::add(totals_.pressures, 1);
    events::write_entry(EntryKind::pressure, LimitKind::none, request.bytes, options_.name);
    return outcome;
}

/// Releases all free slabs, without the lock during the calls to the system.
std::size_t PinnedCore::give_back() noexcept {
    std::size_t given = 0;
    while (Slab* const slab = take_free_slab(heap_, slabs_)) {
        DeviceStatus status = DeviceStatus::ok;
        {
            const Unlocked unlocked(mutex_);
            events::record(TraceAction::slab_end, record_.id(), slab->base, slab->bytes);
            status = backend_.deallocate_pinned(device_, slab->base, slab->bytes);
        }
        if (status != DeviceStatus::ok) {
            events::record(TraceAction::slab, record_.id(), slab->base, slab->bytes);
            heap_.put_back(*slab->first, idle_stamp);
            break;
        }
        given += slab->bytes;
        totals_.count_give_back(slab->bytes);
        budget_.refund(slab->bytes);
        heap_.remove_slab(*slab);
    }
    if (given == 0) return 0;
    record_.note_capacity();
    events::write_entry(EntryKind::give_back, LimitKind::none, given, options_.name);
    return given;
}

// Failure reports --------------------------------------------------------------------------------

/// Called under the lock, after all parked blocks were put into the sets. Reports the machine's
/// memory instead of the device's, because pinned memory is part of it.
void PinnedCore::explain(const Outcome& outcome, const Request& request,
                         DeviceAllocationFailure& failure) noexcept {
    FailureReport report(failure, options_.name, device(), record_.statistics(), limit_);
    report.add_free(slabs_);
    for (const auto& queue : queues_) report.add_holder(*queue);
    failure.device_total = platform::total_memory();
    failure.device_free = platform::available_memory();
    failure.waited_ns = static_cast<std::uint64_t>(outcome.waited.count());
    if (outcome.cause == Cause::budget) report.add_budgets(*request.budget);
    report.judge(request.bytes, outcome.status, outcome.cause, FailureReport::Room::unknown);
    detail::add(totals_.failures, 1);
    events::write_entry(report.entry(), report.limit(), request.bytes, options_.name);
}

}  // namespace tensorpool::device
