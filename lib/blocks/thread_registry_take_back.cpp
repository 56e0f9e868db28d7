#include <algorithm>

#include "blocks/thread_registry.hpp"
#include "platform/platform.hpp"

namespace tensorpool::blocks {

bool ThreadRegistry::take_back(BucketSet& set, TakeFrom from, pages::Changes& changes) noexcept {
    const std::lock_guard guard(mutex_);
    if (!has_fences()) return true;
    CacheList chosen;
    const std::size_t half = set.parking_limit().max_bytes() / 2;
    const std::size_t taken = set.parking_limit().taken();
    std::size_t enough = taken > half ? taken - half : 0;
    set.for_each_series(
        [&](BucketSet& series) { choose(series, own_cache(series), from, enough, chosen); });
    const bool all = chosen.empty() || take_back(chosen, changes);
    while (!chosen.empty()) {
        Cache& cache = chosen.back();
        chosen.pop_back();
        cache.set().caches.push_front(cache);
    }
    return all;
}

void ThreadRegistry::give_back_own(BucketSet& set, pages::Changes& changes) noexcept {
    set.for_each_series([&](const BucketSet& series) {
        if (Cache* const cache = attached(series)) cache->give_back_all(changes);
    });
}

void ThreadRegistry::prepare_fences_early() noexcept {
    if (!platform::is_single_threaded()) return;
    const std::lock_guard guard(mutex_);
    (void)has_fences();
}

bool ThreadRegistry::can_take_back() noexcept {
    const Fences known = fences_.load(std::memory_order_relaxed);
    if (known != Fences::unknown) [[likely]]
        return known == Fences::ready;
    const std::lock_guard guard(mutex_);
    return has_fences();
}

bool ThreadRegistry::has_fences() noexcept {
    if (fences_.load(std::memory_order_relaxed) == Fences::unknown) {
        fences_.store(platform::prepare_fences() ? Fences::ready : Fences::none,
                      std::memory_order_relaxed);
    }
    return fences_.load(std::memory_order_relaxed) == Fences::ready;
}

// Moves the chosen caches out of the set's list. The end of the list holds those that were chosen
// longest ago.
void ThreadRegistry::choose(BucketSet& set, const Cache* own, TakeFrom from, std::size_t& enough,
                            CacheList& chosen) noexcept {
    const auto move_if = [&](auto is_wanted) {
        for (auto next = set.caches.end(); next != set.caches.begin();) {
            Cache& cache = *--next;
            const std::size_t bytes = cache.may_park_bytes();
            if (&cache == own || !is_wanted(cache)) continue;
            if (bytes == 0 && cache.may_park_large_bytes() == 0) continue;
            ++next;
            set.caches.erase(CacheList::s_iterator_to(cache));
            chosen.push_back(cache);
            enough -= std::min(enough, bytes);
        }
    };
    move_if([&](Cache& cache) { return cache.was_idle() || from == TakeFrom::everyone; });
    if (from == TakeFrom::enough) {
        move_if([&](const Cache& cache) { return enough != 0 && cache.may_park_bytes() != 0; });
    }
}

bool ThreadRegistry::take_back(CacheList& caches, pages::Changes& changes) noexcept {
    for (Cache& cache : caches) cache.claim();
    const bool are_claimed = platform::fence_all_threads();
    // A sandbox may have disabled the system call since.
    if (!are_claimed) fences_.store(Fences::none, std::memory_order_relaxed);
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
    if (!closed.empty() && !may_take) fences_.store(Fences::none, std::memory_order_relaxed);
    for (Cache& cache : closed) {
        if (may_take) cache.take_back(changes);
        cache.end_claim();
    }
    const bool all = caches.empty();
    caches.splice(caches.end(), closed);
    return all || !are_claimed;
}

}  // namespace tensorpool::blocks
