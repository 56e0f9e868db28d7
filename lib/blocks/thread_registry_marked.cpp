// The marked set of a pool, and the threads' caches of it.

#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/linked_list.hpp"
#include "blocks/thread_registry.hpp"
#include "limits/scope_budget.hpp"

namespace tensorpool::blocks {

BucketSet* ThreadRegistry::marked_set(BucketSet& first) noexcept {
    BucketSet* const made = first.marked.load(std::memory_order_acquire);
    if (made != nullptr) [[likely]]
        return made;
    const std::lock_guard guard(mutex_);
    return marked_set_under_lock(first);
}

BucketSet* ThreadRegistry::marked_set_under_lock(BucketSet& first) noexcept {
    BucketSet* const made = first.marked.load(std::memory_order_relaxed);
    if (made != nullptr) return made;
    void* const memory = first.records().allocate(sizeof(BucketSet), alignof(BucketSet));
    if (memory == nullptr) return nullptr;
    auto* const set = new (memory) BucketSet(first, BucketSet::Marked());
    base::link_in_front(sets_, *set);
    first.marked.store(set, std::memory_order_release);
    return set;
}

Cache* ThreadRegistry::attach_marked(BucketSet& first) noexcept {
    if (!first.may_cache()) return nullptr;
    Cache* const own = own_caches().own(first.number());
    if (own != nullptr && own->marked != nullptr) [[likely]]
        return attached(own->marked->set());
    if (attach(first) == nullptr) return nullptr;
    const std::lock_guard guard(mutex_);
    BucketSet* const set = marked_set_under_lock(first);
    return set == nullptr ? nullptr : attach_under_lock(*set);
}

void ThreadRegistry::change_scope() noexcept {
    ThreadCaches& own = own_caches();
    while (!own.conceal_all()) wait_for_take_back();
    detail::thread_table = limits::scope_budget == nullptr ? &own : &own.in_scope;
}

bool ThreadRegistry::exposes_within(BucketSet& first, const detail::BudgetNode& budget) noexcept {
    const std::lock_guard guard(mutex_);
    const BucketSet* const set = first.marked.load(std::memory_order_relaxed);
    if (set == nullptr) return false;
    bool exposes = false;
    for (const Cache& cache : set->caches) {
        const detail::BudgetNode* const charged = cache.exposed_to();
        exposes = exposes || (charged != nullptr && charged->is_within(budget));
    }
    return exposes;
}

void ThreadRegistry::hide_frees(BucketSet& first) noexcept {
    if (first.hides_frees.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(mutex_);
    first.hides_frees.store(true, std::memory_order_relaxed);
    first.for_each_series([](BucketSet& set) {
        for (Cache& cache : set.caches) cache.set_first_unguarded();
    });
}

namespace {

/// Holds the lock of a thread's list of caches.
class ListLock {
public:
    explicit ListLock(std::atomic_flag& flag) noexcept : flag_(flag) {
        while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    ~ListLock() { flag_.clear(std::memory_order_release); }
    ListLock(const ListLock&) = delete;
    ListLock& operator=(const ListLock&) = delete;

private:
    std::atomic_flag& flag_;
};

}  // namespace

void ThreadCaches::list_exposing(Cache& cache) noexcept {
    const ListLock lock(exposing_lock_);
    cache.next_exposing = exposing_.load(std::memory_order_relaxed);
    cache.is_listed = true;
    exposing_.store(&cache, std::memory_order_relaxed);
}

void ThreadCaches::unlist_exposing(Cache& cache) noexcept {
    const ListLock lock(exposing_lock_);
    if (!cache.is_listed) return;
    cache.is_listed = false;
    Cache* const head = exposing_.load(std::memory_order_relaxed);
    if (head == &cache) return exposing_.store(cache.next_exposing, std::memory_order_relaxed);
    Cache* before = head;
    while (before->next_exposing != &cache) before = before->next_exposing;
    before->next_exposing = cache.next_exposing;
}

bool ThreadCaches::conceal_all() noexcept {
    if (exposing_.load(std::memory_order_relaxed) == nullptr) return true;
    const ListLock lock(exposing_lock_);
    while (Cache* const cache = exposing_.load(std::memory_order_relaxed)) {
        if (!cache->try_conceal()) return false;
        cache->is_listed = false;
        exposing_.store(cache->next_exposing, std::memory_order_relaxed);
    }
    return true;
}

}  // namespace tensorpool::blocks
