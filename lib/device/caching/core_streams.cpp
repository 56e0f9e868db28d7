#include <algorithm>
#include <string>

#include "device/caching/caching_core.hpp"

// Streams that come and end, and captures, whose memory is their own until their graph is gone.

namespace tensorpool::device {
namespace {

// Of a cache whose capture was released. No capture has it: ids count up.
constexpr std::uint64_t no_capture = ~std::uint64_t{0};

}  // namespace

std::uint64_t CachingCore::capture_of(StreamHandle stream) const noexcept {
    if ((gate_.load(std::memory_order_relaxed) & captures) == 0) return 0;
    CaptureState state;
    const DeviceStatus status = backend_.capture_state(device_, stream, state);
    return status == DeviceStatus::ok && state.capturing ? state.id : 0;
}

bool CachingCore::is_any_captured() const noexcept {
    if (!abilities_.graph_capture) return false;
    return std::any_of(caches_.begin(), caches_.end(), [this](const auto& cache) {
        return !cache->memory.ended && deferred_.is_captured(*cache);
    });
}

void* CachingCore::take_parked_unless_captured(std::size_t bytes, StreamHandle stream) noexcept {
    if (is_watched() || capture_of(stream) != 0) return nullptr;
    StreamCache* const cache = streams_.find(stream);
    Block* const block = cache != nullptr ? cache->take(round_bytes(bytes), bytes) : nullptr;
    return block != nullptr ? block->address : nullptr;
}

StreamCache& CachingCore::cache_of(StreamHandle stream, std::uint64_t capture) {
    if (capture != 0) {
        for (const auto& cache : caches_) {
            if (cache->capture() == capture && cache->stream() == stream) return *cache;
        }
        return new_cache(stream, capture);
    }
    StreamCache* const known = streams_.find(stream);
    if (known == nullptr) {
        StreamCache& cache = new_cache(stream, 0);
        streams_.add(stream, cache);
        return cache;
    }
    if (known->memory.ended) {  // another stream got its handle
        statistics::DeviceStreamCounters& counters = place_.add_stream(stream);
        const std::lock_guard guard(*known);
        known->set_counters(&counters);
        known->memory.ended = false;
    }
    return *known;
}

StreamCache& CachingCore::new_cache(StreamHandle stream, std::uint64_t capture) {
    const bool again = !spare_caches_.empty() && capture != 0;
    if (!again) {
        spare_caches_.reserve(caches_.size() + 1);  // so that it can be spared
        caches_.push_back(std::make_unique<StreamCache>(stream, no_capture));
        spare_caches_.push_back(caches_.back().get());
    }
    StreamCache& cache = *spare_caches_.back();
    statistics::DeviceStreamCounters& counters = place_.add_stream(stream);
    spare_caches_.pop_back();
    const std::lock_guard guard(cache);
    cache.begin_again(stream, capture);
    cache.set_counters(&counters);
    cache.memory.ended = false;
    return cache;
}

/// All blocks of one are the other's: free ones, those in use, and those that wait.
void CachingCore::move_all(StreamCache& from, StreamCache& to) noexcept {
    end_empty_pages(from);
    const std::lock_guard first(from);
    const std::lock_guard second(to);
    // With the lock that is kept: until the blocks are the other's, callers may park some.
    put_back_all(from, from.take_parked());
    heap_.move_slabs(from, to);
    while (from.memory.pages != nullptr) {
        ScalarPage& page = *from.memory.pages;
        from.memory.pages = page.next;
        page.next = to.memory.pages;
        to.memory.pages = &page;
    }
}

/// Its counters go on with another stream.
void CachingCore::retire(StreamCache& cache) noexcept {
    if (cache.memory.marks.is_waiting()) events_.give(cache.memory.marks.reach());
    const std::lock_guard guard(cache);
    cache.memory.ended = true;
    place_.end_stream(*cache.counters());
    cache.set_counters(nullptr);
}

void CachingCore::synchronize_stream(StreamHandle stream, const char* call) {
    const DeviceStatus status = backend_.synchronize_stream(device_, stream);
    if (status == DeviceStatus::ok) return;
    throw DeviceError(status, "tensorpool: " + options_.name + " on " + to_string(device()) + ": " +
                                  call + ": the stream could not be waited for: " +
                                  to_string(status) + ": " + backend_.last_error());
}

void CachingCore::end_stream(StreamHandle stream) {
    if (stream == nullptr) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "tensorpool: " + options_.name +
                              ": end_stream: the default stream ends with its device");
    }
    synchronize_stream(stream, "end_stream");
    Lock lock(mutex_);
    end_captures_of(stream);
    StreamCache* const cache = streams_.find(stream);
    if (cache == nullptr || cache->memory.ended) return;
    detail::add(totals_.synchronizations, 1);
    complete(0);
    while (cache->memory.first_use != nullptr) {  // a block was freed since
        lock.unlock();
        synchronize_stream(stream, "end_stream");
        lock.lock();
        complete(0);
    }
    for (const auto& other : caches_) {
        for (const Slab& slab : other->memory.slabs) {
            for (Block* block = slab.first; block != nullptr; block = block->next) {
                deferred_.forget_uses(*block, *cache);
            }
        }
    }
    move_all(*cache, cache_of(nullptr, 0));
    retire(*cache);
}

/// What graphs hold that were captured in it goes to the default stream one day: the handle leads
/// nowhere then, or to another stream.
void CachingCore::end_captures_of(StreamHandle stream) noexcept {
    for (const auto& cache : caches_) {
        if (cache->capture() == 0 || cache->stream() != stream) continue;
        const std::lock_guard guard(*cache);
        cache->begin_again(nullptr, cache->capture());
    }
}

// Captures ---------------------------------------------------------------------------------------

void CachingCore::begin_capture() noexcept {
    const Lock lock(mutex_);
    ++announced_captures_;
    set_gate();
}

void CachingCore::end_capture() noexcept {
    const Lock lock(mutex_);
    if (announced_captures_ != 0) --announced_captures_;
    set_gate();
}

bool CachingCore::reserve_for_capture(std::size_t bytes, DeviceAllocationFailure& failure) {
    Lock lock(mutex_);
    const Request request = {bytes, base::align_up(bytes, slab_step), Pool::small, 0, false};
    Outcome outcome = failed(DeviceStatus::out_of_memory, Cause::request);
    if (!is_too_large(bytes)) outcome = reserve(request, lock);
    if (outcome.cause != Cause::request && outcome.status == DeviceStatus::out_of_memory) {
        complete(0);
        flush_all();
        (void)give_back(Which::all, most_bytes, lock);
        settle_memory(lock);
        outcome = reserve(request, lock);
    }
    if (outcome.cause != Cause::request && outcome.status == DeviceStatus::out_of_memory) {
        (void)synchronize(lock);
        outcome = reserve(request, lock);
    }
    if (outcome.status == DeviceStatus::ok) return true;
    explain(outcome, request, failure);
    return false;
}

CachingCore::Outcome CachingCore::reserve(const Request& request, Lock& lock) {
    if (!may_grow(request.rounded)) return failed(DeviceStatus::out_of_memory, Cause::limit);
    growing_bytes_ += request.rounded;
    lock.unlock();
    void* memory = nullptr;
    const DeviceStatus status =
        backend_.allocate(device_, request.rounded, options_.storage, &memory);
    lock.lock();
    growing_bytes_ -= request.rounded;
    if (status == DeviceStatus::ok) {
        keep_slab(reserved_, Pool::small, memory, request.rounded, lock);
    }
    return failed(status, status == DeviceStatus::in_capture ? Cause::capture : Cause::own_use);
}

void CachingCore::release_capture(std::uint64_t id) {
    const auto is_its = [&](const StreamCache& cache) { return cache.capture() == id && id != 0; };
    {
        const Lock lock(mutex_);
        bool any = false;
        for (const auto& cache : caches_) any = any || is_its(*cache);
        if (!any) return;
    }
    const DeviceStatus status = backend_.synchronize_device(device_);
    if (status != DeviceStatus::ok) {
        throw DeviceError(status, "tensorpool: " + options_.name + " on " + to_string(device()) +
                                      ": release_capture: the device could not be waited for: " +
                                      to_string(status) + ": " + backend_.last_error());
    }
    const Lock lock(mutex_);
    detail::add(totals_.synchronizations, 1);
    complete(0);
    spare_caches_.reserve(caches_.size() + 1);
    for (std::size_t i = 0; i < caches_.size(); ++i) {  // cache_of may add some
        StreamCache& cache = *caches_[i];
        if (!is_its(cache)) continue;
        StreamCache& to = cache_of(cache.stream(), 0);
        for (const Slab& slab : cache.memory.slabs) {
            detail::add(totals_.captured_bytes, 0 - slab.held_bytes);
        }
        move_all(cache, to);
        retire(cache);
        cache.begin_again(nullptr, no_capture);
        spare_caches_.push_back(&cache);
    }
}

}  // namespace tensorpool::device
