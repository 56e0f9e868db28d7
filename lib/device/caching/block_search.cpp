#include "device/caching/block_search.hpp"

#include <algorithm>

#include "device/caching/failure_report.hpp"
#include "device/caching/pressure.hpp"

namespace tensorpool::device {

Request BlockSearch::request_of(std::size_t bytes, const StreamCache& cache) const noexcept {
    // At least `slab_step`, so that a block can serve the request its slab was made for.
    const std::size_t slack = std::max(state_.options.oversize_slack_bytes, slab_step);
    Request request = {bytes, round_bytes(bytes), Pool::small, slack, false};
    const bool alone =
        !state_.is_expandable(cache) && request.rounded >= state_.options.oversize_bytes;
    // A capture has one pool, so that memory reserved for it serves all sizes.
    if (bytes > small_limit && cache.capture() == 0)
        request.pool = alone ? Pool::oversize : Pool::large;
    return request;
}

Request BlockSearch::shareable_request_of(std::size_t bytes) const noexcept {
    return {bytes, base::align_up(bytes, state_.abilities.granularity), Pool::shareable, 0, false};
}

// A callback may run during a growth for which other threads wait, so its requests ask no holder.
limits::BudgetRequest BlockSearch::new_budget_request() noexcept {
    return AllocatorWatch::is_in_callback() ? limits::BudgetRequest::beyond_soft()
                                            : limits::BudgetRequest();
}

bool BlockSearch::may_retry(const Outcome& outcome, limits::BudgetRequest& budget) const noexcept {
    const bool is_refused = outcome.lacks_memory() && outcome.cause == Outcome::Cause::budget;
    if (!is_refused || AllocatorWatch::is_in_callback()) return false;
    const Unlocked unlocked(state_.mutex);
    return budget.may_retry();
}

Outcome BlockSearch::find(StreamCache& cache, const Request& request) {
    if (is_too_large(request.bytes)) {
        return Outcome::refused(Outcome::Cause::request);
    }
    Outcome outcome;
    const bool shareable = request.pool == Pool::shareable;
    if (!shareable && !state_.asleep) outcome.block = cache.take(request.rounded, request.bytes);
    if (outcome.block != nullptr) return outcome;
    outcome = obtain(cache, request);
    if (outcome.block == nullptr) return outcome;
    const std::lock_guard guard(cache);
    cache.count_new(*outcome.block, request.bytes);
    if (shareable) outcome.block->set(BlockState::shared);  // its free is no fast one
    return outcome;
}

/// True also for sizes that the device can never have, so that no tables of granules are made for
/// them. Managed storage may exceed the device: the excess is in host memory.
bool BlockSearch::is_too_large(std::size_t bytes) const noexcept {
    const auto exceeds = [&](std::size_t limit) { return limit != 0 && bytes > limit; };
    return bytes > max_bytes || exceeds(state_.options.max_allocation) ||
           exceeds(state_.abilities.largest_allocation) ||
           (state_.options.storage != StorageKind::managed && exceeds(state_.total_bytes));
}

Outcome BlockSearch::obtain(StreamCache& cache, const Request& request) {
    const auto pool = static_cast<std::size_t>(request.pool);
    while (true) {
        if (state_.asleep) return Outcome::refused(Outcome::Cause::asleep);
        Outcome outcome;
        outcome.block = free_.take(cache, request);
        if (outcome.block != nullptr) return outcome;
        if (take_over_dead(cache)) continue;
        // A callback may run during that very growth, so it must not wait for it.
        if (!cache.memory.growing[pool] || AllocatorWatch::is_in_callback()) break;
        // The slab that another thread is allocating may serve both.
        wait_unlocked(state_.grown, state_.mutex);
    }
    reclaim_.give_back_shareable();
    reclaim_.mark_caller(cache);
    Request growth = request;
    growth.repeats = cache.memory.growths.repeats(request.rounded);
    const Outcome outcome = growth_.grow(cache, growth);
    if (!outcome.lacks_memory()) return outcome;
    return Pressure(state_, free_, growth_, reclaim_, cache, request).relieve(outcome);
}

/// Moves the memory of dead streams to the cache, and that of released pools to their streams,
/// after one wait for the device. Returns whether there may be some.
bool BlockSearch::take_over_dead(StreamCache& cache) {
    if (!caches_.has_dead() || captures_.is_any_active()) return false;
    StreamCache& to = cache.capture() == 0 ? cache : caches_.of(nullptr, 0);
    caches_.prepare_end_of_dead();
    StreamCache* const dead = caches_.take_dead();
    if (!reclaim_.wait_for_device()) {
        caches_.put_back_dead(dead);
        return false;
    }
    caches_.end_dead(dead, to);
    return true;
}

Outcome BlockSearch::reserve(const Request& request) {
    if (is_too_large(request.bytes)) return Outcome::refused(Outcome::Cause::request);
    if (state_.asleep) return Outcome::refused(Outcome::Cause::asleep);
    Outcome outcome = growth_.reserve(request);
    if (outcome.lacks_memory()) {
        free_.complete();
        free_.flush_all();
        (void)reclaim_.give_back(Reclaim::Which::all, max_bytes);
        reclaim_.settle_memory();
        outcome = growth_.reserve(request);
    }
    if (outcome.lacks_memory()) {
        (void)reclaim_.synchronize();
        outcome = growth_.reserve(request);
    }
    return outcome;
}

void BlockSearch::explain(const Outcome& outcome, const Request& request,
                          DeviceAllocationFailure& failure) {
    FailureReport report(failure, state_.options.name, state_.name_of_device(),
                         state_.record.statistics(), state_.hard_limit);
    for (const auto& cache : state_.caches) {
        report.add_free(*cache);
        report.add_holder(*cache);
    }
    state_.watch.add_callback_names(failure);
    DeviceMemoryInfo info;
    if (state_.backend.memory_info(state_.device, info) == DeviceStatus::ok) {
        failure.device_free = info.free_bytes;
        failure.device_total = info.total_bytes;
        const std::size_t known = info.free_bytes + failure.capacity;
        failure.other_processes = info.total_bytes - std::min(info.total_bytes, known);
    }
    if (outcome.cause == Outcome::Cause::budget) report.add_budgets(*request.budget);
    report.judge(request.bytes, outcome.status, outcome.cause, FailureReport::Room::certain);
    detail::add(state_.totals.failures, 1);
    state_.watch.refused(request.bytes);
    state_.watch.write(report.entry(), request.bytes, report.limit());
}

}  // namespace tensorpool::device
