#include "blocks/take_back.hpp"

#include "blocks/thread_registry.hpp"

namespace tensorpool::blocks {
namespace {

// Relaxed: both the old and the new value are valid for a reader. Threads that prepare fences at
// the same time get the same result.
enum class Fences : std::uint8_t { unknown, none, ready };
constinit std::atomic<Fences> fences = Fences::unknown;

// Fences are prepared while the library is loaded, when the process has one thread: it costs little
// then.
[[maybe_unused]] const bool prepares_fences_early =
    platform::is_single_threaded() && can_take_back();

// Moves the chosen caches out of the set's list. The end of the list holds those that were chosen
// longest ago.
void choose(BucketSet& set, TakeFrom from, std::size_t& enough, CacheList& chosen) noexcept {
    const Cache* const own = own_cache(set);
    const auto move_if = [&](auto is_wanted) {
        for (auto next = set.caches.end(); next != set.caches.begin();) {
            Cache& cache = *--next;
            const std::size_t bytes = cache.room().bytes();
            if (&cache == own || !is_wanted(cache)) continue;
            if (bytes == 0 && cache.large.room_bytes() == 0) continue;
            ++next;
            set.caches.erase(CacheList::s_iterator_to(cache));
            chosen.push_back(cache);
            enough -= std::min(enough, bytes);
        }
    };
    move_if([&](Cache& cache) { return was_idle(cache) || from == TakeFrom::everyone; });
    if (from == TakeFrom::enough) {
        move_if([&](const Cache& cache) { return enough != 0 && cache.room().bytes() != 0; });
    }
}

// Returns false if a thread was inside a slow path.
bool take_back_from(CacheList& caches, pages::Changes& changes) noexcept {
    for (Cache& cache : caches) cache.claim();
    const bool are_claimed = platform::fence_all_threads();
    // A sandbox may have disabled the system call since.
    if (!are_claimed) fences.store(Fences::none, std::memory_order_relaxed);
    CacheList closed;
    for (auto next = caches.begin(); next != caches.end();) {
        Cache& cache = *next++;
        if (!are_claimed || !cache.close()) {
            cache.end_claim();
            continue;
        }
        caches.erase(CacheList::s_iterator_to(cache));
        closed.push_back(cache);
    }
    // After this fence, a thread that takes a block has either seen that the magazine is closed or
    // has lowered its top, which this thread then sees.
    const bool may_take = !closed.empty() && platform::fence_all_threads();
    if (!closed.empty() && !may_take) fences.store(Fences::none, std::memory_order_relaxed);
    for (Cache& cache : closed) {
        if (may_take) cache.take_back(changes);
        cache.end_claim();
    }
    const bool all = caches.empty();
    caches.splice(caches.end(), closed);
    return all || !are_claimed;
}

}  // namespace

bool take_back(BucketSet& set, TakeFrom from, pages::Changes& changes) noexcept {
    const std::lock_guard guard(thread_registry());
    if (!can_take_back()) return true;
    CacheList chosen;
    const ParkingLimit& limit = set.shared().parking_limit;
    const std::size_t half = limit.max_bytes() / 2;
    const std::size_t taken = limit.taken();
    std::size_t enough = taken > half ? taken - half : 0;
    set.for_each_series([&](BucketSet& series) { choose(series, from, enough, chosen); });
    const bool all = chosen.empty() || take_back_from(chosen, changes);
    while (!chosen.empty()) {
        Cache& cache = chosen.back();
        chosen.pop_back();
        cache.set().caches.push_front(cache);
    }
    return all;
}

void give_back_own(BucketSet& set, pages::Changes& changes) noexcept {
    set.for_each_series([&](const BucketSet& series) {
        if (Cache* const cache = thread_registry().attached(series)) cache->give_back_all(changes);
    });
}

bool can_take_back() noexcept {
    Fences known = fences.load(std::memory_order_relaxed);
    if (known == Fences::unknown) [[unlikely]] {
        known = platform::prepare_fences() ? Fences::ready : Fences::none;
        fences.store(known, std::memory_order_relaxed);
    }
    return known == Fences::ready;
}

void wait_for_take_back() noexcept {
    const std::lock_guard guard(thread_registry());
}

bool was_idle(Cache& cache) noexcept {
    std::uint64_t calls = 0;
    for (const detail::BucketCounters& counted : cache.counters->buckets) {
        calls += counted.allocations.load(std::memory_order_relaxed) +
                 counted.deallocations.load(std::memory_order_relaxed);
    }
    const detail::LargeCounters& large = cache.counters->large;
    const std::uint64_t large_calls = large.allocations.load(std::memory_order_relaxed) +
                                      large.deallocations.load(std::memory_order_relaxed);
    const bool calls_small = std::exchange(cache.seen_calls, calls) != calls;
    const bool calls_large = std::exchange(cache.seen_large_calls, large_calls) != large_calls;
    return cache.large.room_bytes() != 0 ? !calls_large : !calls_small && !calls_large;
}

}  // namespace tensorpool::blocks
