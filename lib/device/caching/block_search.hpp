#pragma once

#include "device/caching/failure_report.hpp"
#include "device/caching/growth.hpp"
#include "device/caching/streams/stream_caches.hpp"

namespace tensorpool::device {

/// The steps taken before a request fails, cheapest first. One object serves one request. Each step
/// taken is an entry on the timeline, with the bytes that it freed.
class Pressure {
public:
    Pressure(AllocatorState& state, FreeBlocks& free, Growth& growth, Reclaim& reclaim,
             StreamCache& cache, const Request& request) noexcept
        : state_(state),
          free_(free),
          growth_(growth),
          reclaim_(reclaim),
          cache_(cache),
          request_(request) {}

    /// Returns the outcome of the steps, after the failure `refused`. Throws std::bad_alloc.
    Outcome relieve(const Outcome& refused) {
        outcome_ = refused;
        // During a capture no memory is given back, and the device may not be waited for.
        if (cache_.capture() != 0) {
            if (refused.cause != Outcome::Cause::budget) outcome_.cause = Outcome::Cause::capture;
            return outcome_;
        }
        static constexpr Step steps[] = {
            {&Pressure::complete, Retry::search},
            // Blocks that other streams had parked may form whole slabs now, or granules that can
            // be moved.
            {&Pressure::coalesce, Retry::grow_if_expandable},
            {&Pressure::give_aged_back, Retry::grow_if_freed},
            {&Pressure::call_back, Retry::grow},
            {&Pressure::give_all_back, Retry::grow_if_freed},
            {&Pressure::synchronize, Retry::grow},
        };
        for (const Step& step : steps) {
            if (state_.asleep) return Outcome::refused(Outcome::Cause::asleep);
            const std::size_t freed = (this->*step.take)();
            if (step.retry == Retry::grow_if_freed && freed == 0) continue;
            if (is_over(may_grow_after(step.retry, freed))) break;
        }
        return outcome_;
    }

private:
    /// What follows a step: a search of the sets, and a growth if it may help.
    enum class Retry { search, grow, grow_if_freed, grow_if_expandable };
    struct Step {
        std::size_t (Pressure::*take)();
        Retry retry;
    };

    std::size_t complete() {
        const std::size_t before = free_.bytes();
        free_.complete();
        const std::size_t freed = free_.bytes() - before;
        state_.watch.write(EntryKind::completed, freed);
        return freed;
    }
    std::size_t coalesce() {
        const std::size_t bytes = free_.flush_all();
        state_.watch.write(EntryKind::coalesced, bytes);
        return bytes;
    }
    std::size_t give_aged_back() {
        const std::size_t bytes = reclaim_.give_back(Reclaim::Which::aged, max_bytes);
        state_.watch.write(EntryKind::aged, bytes);
        return bytes;
    }
    /// Returns 0: how much callbacks free is unknown, so growth is tried in any case.
    std::size_t call_back() {
        if (request_.is_retry) return 0;
        state_.watch.write(EntryKind::called_back, request_.bytes);
        const Unlocked unlocked(state_.mutex);
        state_.watch.failing(request_.bytes, cache_.stream());
        return 0;
    }
    std::size_t give_all_back() {
        free_.flush_all();
        const std::size_t bytes = reclaim_.give_back(Reclaim::Which::all, max_bytes);
        state_.watch.write(EntryKind::uncached, bytes);
        return bytes;
    }
    std::size_t synchronize() {
        reclaim_.wait_for_returns();
        const std::size_t bytes = reclaim_.synchronize();
        state_.watch.write(EntryKind::synchronized, bytes);
        return bytes;
    }
    bool may_grow_after(Retry retry, std::size_t freed) const noexcept {
        switch (retry) {
            case Retry::search:
                return false;
            case Retry::grow:
                return true;
            case Retry::grow_if_freed:
                return freed != 0;
            case Retry::grow_if_expandable:
                return state_.is_expandable(cache_);
        }
        return false;
    }
    /// Returns whether there is a block now, or the device failed for another reason than memory.
    bool is_over(bool may_grow) {
        outcome_.block = state_.asleep ? nullptr : free_.take(cache_, request_);
        may_grow = may_grow && !state_.asleep;
        outcome_.memory = AllocatorWatch::Memory::recycled;
        if (outcome_.block == nullptr && may_grow) {
            reclaim_.settle_memory();
            outcome_ = growth_.grow(cache_, request_);
        }
        if (outcome_.block != nullptr) {
            detail::add(state_.totals.pressures, 1);
            state_.watch.write(EntryKind::pressure, request_.bytes);
            return true;
        }
        return outcome_.status != DeviceStatus::ok && !outcome_.lacks_memory();
    }

    AllocatorState& state_;
    FreeBlocks& free_;
    Growth& growth_;
    Reclaim& reclaim_;
    StreamCache& cache_;
    const Request& request_;
    Outcome outcome_;
};

/// Finds a block for a request: in the sets, in memory of the device, or after memory pressure was
/// relieved.
class BlockSearch {
public:
    BlockSearch(AllocatorState& state, FreeBlocks& free, Captures& captures, StreamCaches& caches,
                Reclaim& reclaim, Growth& growth) noexcept
        : state_(state),
          free_(free),
          captures_(captures),
          caches_(caches),
          reclaim_(reclaim),
          growth_(growth) {}

    Request request_of(std::size_t bytes, const StreamCache& cache) const noexcept {
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
    /// Returns a request for a block that has a slab of its own.
    Request shareable_request_of(std::size_t bytes) const noexcept {
        return {bytes, base::align_up(bytes, state_.abilities.granularity), Pool::shareable, 0,
                false};
    }
    /// Returns what a request charges to budgets.
    // A callback may run during a growth for which other threads wait, so its requests ask no
    // holder.
    static limits::BudgetRequest new_budget_request() noexcept {
        return AllocatorWatch::is_in_callback() ? limits::BudgetRequest::beyond_soft()
                                                : limits::BudgetRequest();
    }

    /// Returns a block that belongs to the caller and is counted. Throws std::bad_alloc.
    Outcome find(StreamCache& cache, const Request& request) {
        if (is_too_large(request.bytes)) {
            return Outcome::refused(Outcome::Cause::request);
        }
        Outcome outcome;
        const bool shareable = request.pool == Pool::shareable;
        if (!shareable && !state_.asleep)
            outcome.block = cache.take(request.rounded, request.bytes);
        if (outcome.block != nullptr) return outcome;
        outcome = obtain(cache, request);
        if (outcome.block == nullptr) return outcome;
        const std::lock_guard guard(cache);
        cache.count_new(*outcome.block, request.bytes);
        if (shareable) outcome.block->set(BlockState::shared);  // its free is no fast one
        return outcome;
    }
    /// Returns a block that is not counted yet. Throws std::bad_alloc.
    Outcome obtain(StreamCache& cache, const Request& request) {
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
    /// Allocates a slab for later captures. The outcome has no block.
    Outcome reserve(const Request& request) {
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
    /// Asks holders, without the lock, if a budget refused the request. Returns whether it may
    /// succeed now.
    bool may_retry(const Outcome& outcome, limits::BudgetRequest& budget) const noexcept {
        const bool is_refused = outcome.lacks_memory() && outcome.cause == Outcome::Cause::budget;
        if (!is_refused || AllocatorWatch::is_in_callback()) return false;
        const Unlocked unlocked(state_.mutex);
        return budget.may_retry();
    }
    /// Fills in the failure. Memory counts as free if it is in the sets or parked by a stream.
    void explain(const Outcome& outcome, const Request& request, DeviceAllocationFailure& failure) {
        FailureReport report(failure, state_.options.name, state_.name_of_device(),
                             state_.record.statistics(), state_.hard_limit);
        for (const auto& cache : state_.caches) {
            report.add_free(*cache);
            report.add_holder(*cache);
        }
        state_.watch.add_callback_names(failure);
        report.add_device(state_.backend);
        if (outcome.cause == Outcome::Cause::budget) report.add_budgets(*request.budget);
        report.judge(request.bytes, outcome.status, outcome.cause, FailureReport::Room::certain);
        detail::add(state_.totals.failures, 1);
        state_.watch.refused(request.bytes);
        state_.watch.write(report.entry(), request.bytes, report.limit());
    }

private:
    /// True also for sizes that the device can never have, so that no tables of granules are made
    /// for them. Managed storage may exceed the device: the excess is in host memory.
    bool is_too_large(std::size_t bytes) const noexcept {
        const auto exceeds = [&](std::size_t limit) { return limit != 0 && bytes > limit; };
        return bytes > max_bytes || exceeds(state_.options.max_allocation) ||
               exceeds(state_.abilities.largest_allocation) ||
               (state_.options.storage != StorageKind::managed && exceeds(state_.total_bytes));
    }
    /// Moves the memory of dead streams to the cache, and that of released pools to their streams,
    /// after one wait for the device. Returns whether there may be some.
    bool take_over_dead(StreamCache& cache) {
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

    AllocatorState& state_;
    FreeBlocks& free_;
    Captures& captures_;
    StreamCaches& caches_;
    Reclaim& reclaim_;
    Growth& growth_;
};

}  // namespace tensorpool::device
