#pragma once

#include "device/caching/failure_report.hpp"
#include "device/caching/growth.hpp"

namespace tensorpool::device {

// For caches whose capture was released. No capture has this id: ids count up from 1.
inline constexpr std::uint64_t no_capture = ~std::uint64_t{0};

inline void synchronize(const AllocatorState& state, StreamHandle stream) {
    const DeviceStatus status = state.calls.synchronize(stream);
    if (status != DeviceStatus::ok)
        state.throw_error(status, "end_stream", "the wait for the stream failed");
}

/// The caches of streams: one for each stream, and one for each stream of a capture. A cache lives
/// until the allocator is destroyed; the cache of a released capture serves a later one.
class StreamCaches {
public:
    StreamCaches(AllocatorState& state, FreeBlocks& free, Scalars& scalars) noexcept
        : state_(state), free_(free), scalars_(scalars) {}

    /// Returns the stream's cache and makes it if there is none. Throws std::bad_alloc.
    StreamCache& of(StreamHandle stream, std::uint64_t capture) {
        if (capture != 0) {
            for (const auto& cache : state_.caches) {
                if (cache->capture() == capture && cache->stream() == stream) return *cache;
            }
            return make(stream, capture);
        }
        StreamCache* const known = state_.streams.find(stream);
        if (known == nullptr) {
            find_ended_threads();
            StreamCache& cache = make(stream, 0);
            state_.streams.add(stream, cache);
            return cache;
        }
        if (known->memory.ended) {  // the handle was reused for a new stream
            statistics::DeviceStreamRecord& record = state_.record.add_stream(stream);
            const std::lock_guard guard(*known);
            known->set_record(&record);
            known->memory.ended = false;
        }
        return *known;
    }
    /// Like `of`, for a stream that the caller names, so that it exists. A new stream under the
    /// handle of a former one gets a new cache.
    StreamCache& of_caller(StreamHandle stream, std::uint64_t capture) {
        StreamCache& cache = of(stream, capture);
        if (capture != 0 || state_.calls.may_ask(stream)) return cache;
        const std::uint64_t id = state_.calls.id_of(stream);
        const std::uint64_t known = std::exchange(cache.memory.stream_id, id);
        if (known == id || known == 0 || id == 0) return cache;
        cache.memory.stream_id = known;
        StreamCache& fresh = replace(cache);
        fresh.memory.stream_id = id;
        return fresh;
    }

    // Dead caches: of streams that their owners destroyed without `end_stream`, and of released
    // pools. Work may use their memory until the device was waited for.

    bool has_dead() const noexcept { return dead_ != nullptr; }
    /// Takes the list of dead caches, by `next_dead`.
    StreamCache* take_dead() noexcept { return std::exchange(dead_, nullptr); }
    void put_back_dead(StreamCache* list) noexcept {
        StreamCache** end = &list;
        while (*end != nullptr) end = &(*end)->memory.next_dead;
        *end = std::exchange(dead_, list);
    }
    /// Makes the caches that `end_dead` moves memory of pools to. Throws std::bad_alloc.
    void prepare_end_of_dead() {
        for (const StreamCache* cache = dead_; cache != nullptr; cache = cache->memory.next_dead) {
            if (cache->capture() != 0) (void)of(cache->stream(), 0);
        }
    }
    /// Moves the memory of a list of dead caches: that of pools to the streams that used it, whose
    /// blocks may still be in use, and that of dead streams to `to`. REQUIRES: the device was
    /// waited for since the list was taken, and since `prepare_end_of_dead`.
    void end_dead(StreamCache* list, StreamCache& to) noexcept {
        while (list != nullptr) {
            StreamCache& cache = *list;
            list = std::exchange(cache.memory.next_dead, nullptr);
            cache.memory.dead = false;
            StreamCache* const own =
                cache.capture() != 0 ? state_.streams.find(cache.stream()) : &to;
            // A use may have been added during the wait, or the stream may have ended.
            const bool is_over = cache.memory.queue.first == nullptr && own != nullptr;
            is_over ? retire_into(cache, own->memory.ended ? to : *own) : bury(cache);
        }
    }
    /// Makes the caches of a released pool dead.
    void release_pool(std::uint64_t number) noexcept {
        for (const auto& cache : state_.caches) {
            if (cache->capture() == number) bury(*cache);
        }
    }

    /// Waits for the stream's work, and moves its memory to the default stream.
    void end_stream(StreamHandle stream) {
        if (!state_.calls.may_ask(stream)) (void)of_caller(stream, 0);
        {
            const Unlocked unlocked(state_.mutex);
            synchronize(state_, stream);
        }
        end_captures_of(stream);
        StreamCache* const cache = state_.streams.find(stream);
        if (cache == nullptr || cache->memory.ended) return;
        detail::add(state_.totals.synchronizations, 1);
        StreamQueue& queue = cache->memory.queue;
        for (const auto& other : state_.caches) forget_uses(state_.deferred, *other, queue);
        free_.complete();
        state_.deferred.end(
            queue, state_.mutex, [&] { synchronize(state_, stream); },
            [&](DeferrableBlock& block) { free_.reuse(static_cast<Block&>(block)); });
        cache->memory.marks.pass_all();
        move_all(*cache, of(nullptr, 0));
        retire(*cache);
    }
    bool has_capture(std::uint64_t id) const noexcept {
        const auto is_it = [id](const auto& cache) { return cache->capture() == id; };
        return id != 0 && std::ranges::any_of(state_.caches, is_it);
    }
    /// Ends a capture whose work is done, and moves its memory to its streams. Throws
    /// std::bad_alloc.
    void end_capture(std::uint64_t id) {
        for (std::size_t i = 0; i < state_.caches.size(); ++i) {  // `of` may add caches
            StreamCache& cache = *state_.caches[i];
            if (cache.capture() != id) continue;
            StreamCache& to = of(cache.stream(), 0);
            cache.memory.marks.pass_all();
            retire_into(cache, to);
        }
    }

private:
    StreamCache& make(StreamHandle stream, std::uint64_t capture) {
        const bool again = !spare_.empty() && capture != 0;
        if (!again) {
            spare_.reserve(state_.caches.size() + 1);  // so that retiring it cannot fail
            state_.caches.push_back(std::make_unique<StreamCache>(stream, no_capture));
            spare_.push_back(state_.caches.back().get());
        }
        StreamCache& cache = *spare_.back();
        statistics::DeviceStreamRecord& record = state_.record.add_stream(stream);
        spare_.pop_back();
        const std::lock_guard guard(cache);
        cache.begin_again(stream, capture);
        cache.set_record(&record);
        cache.memory.ended = false;
        return cache;
    }
    /// Makes another cache for the handle of a dead stream. Throws std::bad_alloc, and then changes
    /// nothing.
    StreamCache& replace(StreamCache& dead) {
        StreamCache& fresh = make(dead.stream(), 0);
        state_.streams.replace(dead.stream(), fresh);
        bury(dead);
        return fresh;
    }
    /// Finds the default streams of threads that have ended. Their keys are never used again.
    void find_ended_threads() noexcept {
        for (const auto& cache : state_.caches) {
            if (cache->memory.ended || cache->capture() != 0) continue;
            if (StreamCalls::is_of_ended_thread(cache->stream())) bury(*cache);
        }
    }
    void bury(StreamCache& cache) noexcept {
        if (std::exchange(cache.memory.dead, true)) return;
        cache.memory.next_dead = std::exchange(dead_, &cache);
    }
    /// Moves all blocks of one cache to the other: free ones, those in use, and deferred ones.
    void move_all(StreamCache& from, StreamCache& to) noexcept {
        scalars_.end_empty(from);
        const std::lock_guard first(from);
        const std::lock_guard second(to);
        // The lock is kept: otherwise callers could park more blocks before the move.
        free_.put_back(from, from.take_parked());
        state_.heap.move_slabs(from, to);
        while (from.memory.pages != nullptr) {
            ScalarPage& page = *from.memory.pages;
            from.memory.pages = page.next;
            page.next = to.memory.pages;
            to.memory.pages = &page;
        }
    }
    /// Retires a cache; its counters are reused for another stream.
    void retire(StreamCache& cache) noexcept {
        if (cache.memory.marks.is_waiting()) state_.events.give(cache.memory.marks.reach());
        cache.memory.stream_id = 0;
        const std::lock_guard guard(cache);
        cache.memory.ended = true;
        state_.record.end_stream(*cache.record());
        cache.set_record(nullptr);
    }
    /// Moves the memory of a cache to another, and keeps the former for a later capture.
    void retire_into(StreamCache& cache, StreamCache& to) noexcept {
        if (cache.capture() != 0) {
            for (const Slab& slab : cache.memory.slabs) {
                detail::add(state_.totals.captured_bytes, 0 - slab.held_bytes);
            }
        }
        move_all(cache, to);
        retire(cache);
        cache.begin_again(nullptr, no_capture);
        spare_.push_back(&cache);  // there is room: see `make`
    }
    /// Memory of graphs captured in this stream goes to the default stream when it is released,
    /// because by then the handle is invalid or names another stream.
    void end_captures_of(StreamHandle stream) noexcept {
        for (const auto& cache : state_.caches) {
            if (cache->capture() == 0 || cache->stream() != stream) continue;
            const std::lock_guard guard(*cache);
            cache->begin_again(nullptr, cache->capture());
        }
    }

    AllocatorState& state_;
    FreeBlocks& free_;
    Scalars& scalars_;
    std::vector<StreamCache*> spare_;  // caches of released captures and of dead streams
    StreamCache* dead_ = nullptr;
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
        return relieve(cache, request, outcome);
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
    /// Throws the exception for a failure. Memory counts as free if it is in the sets or parked by
    /// a stream.
    [[noreturn]] void refuse(const Outcome& outcome, const Request& request) {
        DeviceAllocationFailure failure;
        FailureReport report(failure, state_.name, state_.name_of_device(),
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
        throw_failure(failure, state_.backend);
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
    /// The steps taken before a request fails, cheapest first. Each is an entry on the timeline,
    /// with the bytes that it freed, and is followed by a search of the sets, and a growth if it
    /// may help. Returns their outcome, after the failure `outcome`. Throws std::bad_alloc.
    Outcome relieve(StreamCache& cache, const Request& request, Outcome outcome) {
        // During a capture no memory is given back, and the device may not be waited for.
        if (cache.capture() != 0) {
            if (outcome.cause != Outcome::Cause::budget) outcome.cause = Outcome::Cause::capture;
            return outcome;
        }
        const auto steps = {&BlockSearch::complete,       &BlockSearch::coalesce,
                            &BlockSearch::give_aged_back, &BlockSearch::call_back,
                            &BlockSearch::give_all_back,  &BlockSearch::synchronize};
        for (const auto step : steps) {
            if (state_.asleep) return Outcome::refused(Outcome::Cause::asleep);
            const Next next = (this->*step)(cache, request);
            if (next == Next::step) continue;
            if (is_over(cache, request, next == Next::grow, outcome)) break;
        }
        return outcome;
    }
    /// What follows a step: the next one, or a search of the sets, and a growth if that fails.
    enum class Next { step, search, grow };

    Next complete(StreamCache&, const Request&) {
        const std::size_t before = free_.bytes();
        free_.complete();
        state_.watch.write(EntryKind::completed, free_.bytes() - before);
        return Next::search;
    }
    /// Blocks that other streams had parked may form whole slabs now, or granules that can be
    /// moved.
    Next coalesce(StreamCache& cache, const Request&) {
        state_.watch.write(EntryKind::coalesced, free_.flush_all());
        return state_.is_expandable(cache) ? Next::grow : Next::search;
    }
    Next give_aged_back(StreamCache&, const Request&) {
        const std::size_t bytes = reclaim_.give_back(Reclaim::Which::aged, max_bytes);
        state_.watch.write(EntryKind::aged, bytes);
        return bytes != 0 ? Next::grow : Next::step;
    }
    /// How much callbacks free is unknown, so growth is tried in any case.
    Next call_back(StreamCache& cache, const Request& request) {
        if (request.is_retry) return Next::grow;
        state_.watch.write(EntryKind::called_back, request.bytes);
        const Unlocked unlocked(state_.mutex);
        state_.watch.failing(request.bytes, cache.stream());
        return Next::grow;
    }
    Next give_all_back(StreamCache&, const Request&) {
        free_.flush_all();
        const std::size_t bytes = reclaim_.give_back(Reclaim::Which::all, max_bytes);
        state_.watch.write(EntryKind::uncached, bytes);
        return bytes != 0 ? Next::grow : Next::step;
    }
    Next synchronize(StreamCache&, const Request&) {
        reclaim_.wait_for_returns();
        state_.watch.write(EntryKind::synchronized, reclaim_.synchronize());
        return Next::grow;
    }
    /// Returns whether there is a block now, or the device failed for another reason than memory.
    bool is_over(StreamCache& cache, const Request& request, bool may_grow, Outcome& outcome) {
        outcome.block = state_.asleep ? nullptr : free_.take(cache, request);
        outcome.memory = AllocatorWatch::Memory::recycled;
        if (outcome.block == nullptr && may_grow && !state_.asleep) {
            reclaim_.settle_memory();
            outcome = growth_.grow(cache, request);
        }
        if (outcome.block != nullptr) {
            detail::add(state_.totals.pressures, 1);
            state_.watch.write(EntryKind::pressure, request.bytes);
            return true;
        }
        return outcome.status != DeviceStatus::ok && !outcome.lacks_memory();
    }

    AllocatorState& state_;
    FreeBlocks& free_;
    Captures& captures_;
    StreamCaches& caches_;
    Reclaim& reclaim_;
    Growth& growth_;
};

}  // namespace tensorpool::device
