#pragma once

#include "blocks/thread_registry.hpp"

namespace tensorpool::blocks {

/// Returns the calling thread's cache of the marked set of the pool of `first`; makes both if
/// needed. Returns nullptr where `ThreadRegistry::attach` does.
inline Cache* attach_marked(BucketSet& first) noexcept {
    if (!first.may_cache()) return nullptr;
    Cache* const own = own_caches().own(first.number());
    if (own != nullptr && own->marked != nullptr) [[likely]]
        return thread_registry().attached(own->marked->set());
    if (thread_registry().attach(first) == nullptr) return nullptr;
    BucketSet* const set = thread_registry().marked_set(first);
    return set == nullptr ? nullptr : thread_registry().attach(*set);
}

/// Called when the budget of the calling thread's scope changed: conceals the blocks that its
/// caches expose, and shows inline paths the other view of its caches.
inline void scope_changed() noexcept {
    ThreadCaches& own = own_caches();
    while (!own.conceal_all()) wait_for_take_back();
    detail::thread_table = limits::scope_budget == nullptr ? &own : &own.in_scope;
}

/// Returns whether a cache of the pool of `first` exposes blocks that are charged to `budget` or to
/// one below it.
inline bool exposes_within(BucketSet& first, const detail::BudgetNode& budget) noexcept {
    const std::lock_guard guard(thread_registry());
    const BucketSet* const set = first.shared().marked.load(std::memory_order_relaxed);
    if (set == nullptr) return false;
    return std::any_of(set->caches.begin(), set->caches.end(), [&](const Cache& cache) {
        const detail::BudgetNode* const charged = cache.exposed_to();
        return charged != nullptr && charged->is_within(budget);
    });
}

/// From now on, inline frees recognize no block of the pool of `first`.
inline void hide_frees(BucketSet& first) noexcept {
    if (first.shared().hides_frees.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(thread_registry());
    first.shared().hides_frees.store(true, std::memory_order_relaxed);
    first.for_each_series([](BucketSet& set) {
        for (Cache& cache : set.caches) {
            cache.first_unguarded.store(UINTPTR_MAX, std::memory_order_relaxed);
        }
    });
}

/// Called before blocks of a marked set are handed out. If one does not lie at the low addresses,
/// which are used up, calls `hide_frees`.
inline void note_addresses(BucketSet& set, void* const* blocks, std::size_t count) noexcept {
    const auto lies_low = [&](const void* block) { return set.lies_low(block); };
    if (!std::all_of(blocks, blocks + count, lies_low)) [[unlikely]]
        hide_frees(set.first());
}

}  // namespace tensorpool::blocks
