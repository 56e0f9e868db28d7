#include "blocks/marked_set.hpp"

#include <mutex>

#include "blocks/take_back.hpp"
#include "blocks/thread_registry.hpp"
#include "limits/scope_budget.hpp"

namespace tensorpool::blocks {

Cache* attach_marked(BucketSet& first) noexcept {
    if (!first.may_cache()) return nullptr;
    Cache* const own = own_caches().own(first.number());
    if (own != nullptr && own->marked != nullptr) [[likely]]
        return thread_registry().attached(own->marked->set());
    if (thread_registry().attach(first) == nullptr) return nullptr;
    BucketSet* const set = thread_registry().marked_set(first);
    return set == nullptr ? nullptr : thread_registry().attach(*set);
}

void scope_changed() noexcept {
    ThreadCaches& own = own_caches();
    while (!own.conceal_all()) wait_for_take_back();
    detail::thread_table = limits::scope_budget == nullptr ? &own : &own.in_scope;
}

bool exposes_within(BucketSet& first, const detail::BudgetNode& budget) noexcept {
    const std::lock_guard guard(thread_registry());
    const BucketSet* const set = first.shared().marked.load(std::memory_order_relaxed);
    if (set == nullptr) return false;
    return std::any_of(set->caches.begin(), set->caches.end(), [&](const Cache& cache) {
        const detail::BudgetNode* const charged = cache.exposed_to();
        return charged != nullptr && charged->is_within(budget);
    });
}

void hide_frees(BucketSet& first) noexcept {
    if (first.shared().hides_frees.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(thread_registry());
    first.shared().hides_frees.store(true, std::memory_order_relaxed);
    first.for_each_series([](BucketSet& set) {
        for (Cache& cache : set.caches) {
            cache.first_unguarded.store(UINTPTR_MAX, std::memory_order_relaxed);
        }
    });
}

}  // namespace tensorpool::blocks
