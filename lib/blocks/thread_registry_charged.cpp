// Sets of buckets that charge their blocks to the budget of a scope.

#include <new>

#include "base/linked_list.hpp"
#include "blocks/thread_registry.hpp"
#include "limits/scope_budget.hpp"

namespace tensorpool::blocks {

Cache* ThreadRegistry::enter_scope(BucketSet& first) noexcept {
    detail::BudgetNode* const budget = limits::scope_budget;
    Cache* entered = nullptr;
    first.for_each_series([&](const BucketSet& set) {
        if (!set.is_charged() || set.charge().budget() != budget) return;
        Cache* const own = own_cache(set);
        if (own != nullptr && own->is_in_scope) entered = own;
    });
    if (entered != nullptr) return attached(entered->set());
    if (!first.may_cache() || attach(first) == nullptr) return nullptr;
    const std::lock_guard guard(mutex_);
    BucketSet* const set = charged_set(first, *budget);
    if (set == nullptr) return nullptr;
    Cache* cache = own_cache(*set);
    if (cache == nullptr && set->may_cache()) cache = attach_under_lock(*set);
    if (cache == nullptr) {
        end_if_unused(*set);
        return nullptr;
    }
    ++set->charge().users;
    cache->is_in_scope = true;
    show(own_caches(), *set);
    return cache;
}

BucketSet* ThreadRegistry::charged_set(BucketSet& first, detail::BudgetNode& budget) noexcept {
    BucketSet* idle = nullptr;
    BucketSet* used = nullptr;
    first.for_each_series([&](BucketSet& set) {
        if (!set.is_charged()) return;
        if (set.charge().budget() == nullptr) idle = &set;
        if (set.charge().budget() == &budget) used = &set;
    });
    if (used != nullptr) return used;
    if (idle == nullptr) idle = make_charged_set(first);
    if (idle == nullptr) return nullptr;
    idle->charge().begin(budget);
    if (first.charged_sets.fetch_add(1, std::memory_order_relaxed) == 0) watch_frees(first);
    return idle;
}

BucketSet* ThreadRegistry::make_charged_set(BucketSet& first) noexcept {
    void* const memory = first.records().allocate(sizeof(BucketSet), alignof(BucketSet));
    if (memory == nullptr) return nullptr;
    const unsigned number = take_free_number();
    if (number == no_number) return nullptr;
    BucketSet* const set = new (memory) BucketSet(first, BucketSet::Charged(), number);
    base::link_in_front(sets_, *set);
    return set;
}

// While blocks are charged, every free of the pool takes the slow path, which looks into the page
// map. A thread that frees a charged block got it from one that allocated it after this.
void ThreadRegistry::watch_frees(BucketSet& first) noexcept {
    const bool is_hidden = first.charged_sets.load(std::memory_order_relaxed) != 0;
    first.for_each_series([&](BucketSet& set) {
        for (Cache& cache : set.caches) cache.hide_frees(is_hidden);
    });
}

void ThreadRegistry::end_if_unused(BucketSet& set) noexcept {
    if (set.charge().budget() == nullptr || !set.charge().is_unused()) return;
    set.charge().end();
    BucketSet& first = set.first();
    if (first.charged_sets.fetch_sub(1, std::memory_order_relaxed) == 1) watch_frees(first);
}

bool ThreadRegistry::has_charges_within(BucketSet& first,
                                        const detail::BudgetNode& budget) noexcept {
    if (first.charged_sets.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard guard(mutex_);
    bool has_charges = false;
    first.for_each_series([&](const BucketSet& set) {
        const detail::BudgetNode* const charged = set.charge().budget();
        has_charges = has_charges || (charged != nullptr && charged->is_within(budget));
    });
    return has_charges;
}

void ThreadRegistry::release_unused(BucketSet& set) noexcept {
    const std::lock_guard guard(mutex_);
    end_if_unused(set);
}

// The mutex is held for all caches, so that no other thread destroys a pool with one of them.
void ThreadRegistry::change_scope(const detail::BudgetNode* ended) noexcept {
    if (detail::thread_table == &no_caches) return;
    const std::lock_guard guard(mutex_);
    ThreadCaches& table = own_caches();
    for_each_number(table, [&](unsigned number) {
        table.set_view(number, empty_cache);
        Cache* const cache = table.own(number);
        if (cache == nullptr || !cache->is_in_scope) return;
        BucketSet& set = cache->set();
        if (set.charge().budget() != ended) return;
        cache->give_back_blocks();
        cache->is_in_scope = false;
        --set.charge().users;
        end_if_unused(set);
    });
}

}  // namespace tensorpool::blocks
