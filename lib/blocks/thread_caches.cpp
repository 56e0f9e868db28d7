#include "blocks/thread_caches.hpp"

namespace tensorpool::blocks {

constinit detail::ThreadCache empty_cache;
constinit detail::ThreadLeaf empty_leaf = leaf_of_empty_caches();
constinit OwnCaches no_own_caches = {};
constinit ThreadCaches no_caches;

}  // namespace tensorpool::blocks

namespace tensorpool::detail {
inline namespace abi_2 {

constinit thread_local ThreadTable* thread_table TENSORPOOL_INITIAL_EXEC = &blocks::no_caches;

}  // namespace abi_2
}  // namespace tensorpool::detail

namespace tensorpool::blocks {

constinit thread_local ThreadCaches* thread_caches TENSORPOOL_INITIAL_EXEC = &no_caches;

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
