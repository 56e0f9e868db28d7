#pragma once

#include "device/caching/scalars.hpp"

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
        return id != 0 && std::any_of(state_.caches.begin(), state_.caches.end(),
                                      [&](const auto& cache) { return cache->capture() == id; });
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

}  // namespace tensorpool::device
