#include "device/caching/streams/stream_caches.hpp"

namespace tensorpool::device {
namespace {

// For caches whose capture was released. No capture has this id: ids count up from 1.
constexpr std::uint64_t no_capture = ~std::uint64_t{0};

void synchronize(const AllocatorState& state, StreamHandle stream) {
    const DeviceStatus status = state.calls.synchronize(stream);
    if (status != DeviceStatus::ok)
        state.throw_error(status, "end_stream", "the wait for the stream failed");
}

}  // namespace

StreamCache& StreamCaches::of(StreamHandle stream, std::uint64_t capture) {
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

StreamCache& StreamCaches::of_caller(StreamHandle stream, std::uint64_t capture) {
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

/// Makes another cache for the handle of a dead stream. Throws std::bad_alloc, and then changes
/// nothing.
StreamCache& StreamCaches::replace(StreamCache& dead) {
    StreamCache& fresh = make(dead.stream(), 0);
    state_.streams.replace(dead.stream(), fresh);
    bury(dead);
    return fresh;
}

void StreamCaches::bury(StreamCache& cache) noexcept {
    if (std::exchange(cache.memory.dead, true)) return;
    cache.memory.next_dead = std::exchange(dead_, &cache);
}

/// Finds the default streams of threads that have ended. Their keys are never used again.
void StreamCaches::find_ended_threads() noexcept {
    for (const auto& cache : state_.caches) {
        if (cache->memory.ended || cache->capture() != 0) continue;
        if (StreamCalls::is_of_ended_thread(cache->stream())) bury(*cache);
    }
}

void StreamCaches::release_pool(std::uint64_t number) noexcept {
    for (const auto& cache : state_.caches) {
        if (cache->capture() == number) bury(*cache);
    }
}

void StreamCaches::put_back_dead(StreamCache* list) noexcept {
    StreamCache** end = &list;
    while (*end != nullptr) end = &(*end)->memory.next_dead;
    *end = std::exchange(dead_, list);
}

void StreamCaches::prepare_end_of_dead() {
    for (const StreamCache* cache = dead_; cache != nullptr; cache = cache->memory.next_dead) {
        if (cache->capture() != 0) (void)of(cache->stream(), 0);
    }
}

void StreamCaches::end_dead(StreamCache* list, StreamCache& to) noexcept {
    while (list != nullptr) {
        StreamCache& cache = *list;
        list = std::exchange(cache.memory.next_dead, nullptr);
        cache.memory.dead = false;
        StreamCache* const own = cache.capture() != 0 ? state_.streams.find(cache.stream()) : &to;
        // A use may have been added during the wait, or the stream may have ended.
        const bool is_over = cache.memory.queue.first == nullptr && own != nullptr;
        is_over ? retire_into(cache, own->memory.ended ? to : *own) : bury(cache);
    }
}

/// Moves the memory of a cache to another, and keeps the former for a later capture.
void StreamCaches::retire_into(StreamCache& cache, StreamCache& to) noexcept {
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

StreamCache& StreamCaches::make(StreamHandle stream, std::uint64_t capture) {
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

/// Moves all blocks of one cache to the other: free ones, those in use, and deferred ones.
void StreamCaches::move_all(StreamCache& from, StreamCache& to) noexcept {
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
void StreamCaches::retire(StreamCache& cache) noexcept {
    if (cache.memory.marks.is_waiting()) state_.events.give(cache.memory.marks.reach());
    cache.memory.stream_id = 0;
    const std::lock_guard guard(cache);
    cache.memory.ended = true;
    state_.record.end_stream(*cache.record());
    cache.set_record(nullptr);
}

void StreamCaches::end_stream(StreamHandle stream) {
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

/// Memory of graphs captured in this stream goes to the default stream when it is released, because
/// by then the handle is invalid or names another stream.
void StreamCaches::end_captures_of(StreamHandle stream) noexcept {
    for (const auto& cache : state_.caches) {
        if (cache->capture() == 0 || cache->stream() != stream) continue;
        const std::lock_guard guard(*cache);
        cache->begin_again(nullptr, cache->capture());
    }
}

bool StreamCaches::has_capture(std::uint64_t id) const noexcept {
    return id != 0 && std::any_of(state_.caches.begin(), state_.caches.end(),
                                  [&](const auto& cache) { return cache->capture() == id; });
}

void StreamCaches::end_capture(std::uint64_t id) {
    for (std::size_t i = 0; i < state_.caches.size(); ++i) {  // `of` may add caches
        StreamCache& cache = *state_.caches[i];
        if (cache.capture() != id) continue;
        StreamCache& to = of(cache.stream(), 0);
        cache.memory.marks.pass_all();
        retire_into(cache, to);
    }
}

}  // namespace tensorpool::device
