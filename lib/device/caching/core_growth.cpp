#include <algorithm>

#include "device/caching/caching_core.hpp"

// More memory from the device, in slabs that stay as large as they are made.

namespace tensorpool::device {
namespace {

// How much more than the most that was ever in use at once is held before free slabs are given back
// for a new one, in sixteenths: tests/device/caching/slabs_held_test.cpp.
constexpr unsigned slab_goal_sixteenths = 3;

std::size_t preferred_bytes(const Request& request) noexcept {
    static_assert(small_slab_bytes == slab_step);  // what a small request needs; captures need more
    const std::size_t needed = base::align_up(request.rounded, slab_step);
    return request.pool == Pool::large ? std::max(needed, large_slab_bytes) : needed;
}

}  // namespace

CachingCore::Outcome CachingCore::grow(StreamCache& cache, const Request& request, Lock& lock) {
    bool& growing = cache.memory.growing[static_cast<std::size_t>(request.pool)];
    // Also when an exception ends it.
    struct Growing {
        bool& flag;
        std::condition_variable& grown;
        ~Growing() {
            flag = false;
            grown.notify_all();
        }
    };
    growing = true;
    const Growing ends = {growing, grown_};
    return is_expandable(cache) ? grow_in_place(cache, request, lock)
                                : grow_by_slab(cache, request, lock);
}

/// So many bytes may be held for it without giving any back.
std::size_t CachingCore::goal(const Request& request, unsigned sixteenths) const noexcept {
    const std::uint64_t held = totals_.held_bytes.load(std::memory_order_relaxed) + request.rounded;
    const std::uint64_t most =
        std::max(held, totals_.peak_held_bytes.load(std::memory_order_relaxed));
    return static_cast<std::size_t>(most + most / 16 * sixteenths);
}

bool CachingCore::may_grow(std::size_t bytes) const noexcept {
    if (hard_limit_ == 0) return true;
    const std::size_t held =
        static_cast<std::size_t>(totals_.capacity_bytes.load(std::memory_order_relaxed)) +
        growing_bytes_;
    return held <= hard_limit_ && bytes <= hard_limit_ - held;
}

CachingCore::Outcome CachingCore::grow_by_slab(StreamCache& cache, const Request& request,
                                               Lock& lock) {
    Outcome outcome;
    if (cache.capture() != 0 && take_reserved(cache, request)) {
        outcome.block = heap_.take_best(cache, request);
        return outcome;
    }
    const std::size_t preferred = preferred_bytes(request);
    outcome = grow_by_bytes(cache, request, preferred, lock);
    const std::size_t least = base::align_up(request.rounded, slab_step);
    if (outcome.block == nullptr && outcome.status == DeviceStatus::out_of_memory &&
        least < preferred) {
        outcome = grow_by_bytes(cache, request, least, lock);
    }
    return outcome;
}

CachingCore::Outcome CachingCore::grow_by_bytes(StreamCache& cache, const Request& request,
                                                std::size_t bytes, Lock& lock) {
    if (cache.capture() == 0) {
        keep_soft_limit(bytes, lock);
        const std::size_t capacity =
            static_cast<std::size_t>(totals_.capacity_bytes.load(std::memory_order_relaxed)) +
            growing_bytes_ + bytes;
        const std::size_t wanted = goal(request, slab_goal_sixteenths);
        if (capacity > wanted && !request.repeats)
            (void)give_back(Which::whole_slabs, capacity - wanted, lock);
    }
    if (!may_grow(bytes)) return failed(DeviceStatus::out_of_memory, Cause::limit);
    growing_bytes_ += bytes;
    lock.unlock();
    void* memory = nullptr;
    const DeviceStatus status = backend_.allocate(device_, bytes, options_.storage, &memory);
    lock.lock();
    growing_bytes_ -= bytes;
    if (status != DeviceStatus::ok) {
        const bool captured = status == DeviceStatus::in_capture;
        return failed(status, captured ? Cause::capture : Cause::own_use);
    }
    keep_slab(cache, request.pool, memory, bytes, lock);
    Outcome outcome;
    outcome.block = heap_.take_best(cache, request);
    outcome.memory = AllocatorWatch::Memory::fresh;
    return outcome;
}

/// Memory that has just come. Throws std::bad_alloc; then it went back.
void CachingCore::keep_slab(StreamCache& cache, Pool pool, void* memory, std::size_t bytes,
                            Lock& lock) {
    try {
        heap_.add_slab(cache, pool, static_cast<std::byte*>(memory), bytes);
    } catch (...) {
        lock.unlock();
        (void)backend_.deallocate(device_, memory, bytes, options_.storage);
        lock.lock();
        throw;
    }
    totals_.count_growth(bytes);
    place_.note_capacity();
    watch_.gained(memory, bytes);
    const bool captured = cache.capture() != 0 || &cache == &reserved_;
    if (captured) detail::add(totals_.captured_bytes, bytes);
    watch_.write(EntryKind::growth, bytes);
}

/// A slab that was reserved for captures, the smallest that will do.
bool CachingCore::take_reserved(StreamCache& cache, const Request& request) {
    Slab* best = nullptr;
    for (Slab& slab : reserved_.memory.slabs) {
        const bool fits = slab.bytes >= request.rounded;
        if (fits && (best == nullptr || slab.bytes < best->bytes)) best = &slab;
    }
    if (best == nullptr) return false;
    heap_.move_slab(*best, cache, request.pool);
    return true;
}

}  // namespace tensorpool::device
