// What the registry does around a fork.

#include "blocks/thread_registry.hpp"
#include "platform/process/fork_handlers.hpp"
#include "statistics/segment/fork_locks.hpp"
#include "watch/guards/guarded_area.hpp"
#include "watch/profile/profiled_blocks.hpp"

namespace tensorpool::blocks {
namespace {

// Runs while the library is loaded, before there are other threads. A fork between taking the lock
// and setting the fork handlers would leave the child with a lock that no thread releases.
[[maybe_unused]] const bool watches_forks_from_the_start = (thread_registry().watch_forks(), true);

// The system copies each page that the child writes to, so the caches themselves are only read.
void abandon_others(BucketSet& set) noexcept {
    Cache* const own = own_cache(set);
    for (Cache& cache : set.caches) {
        if (&cache == own) continue;
        abandon(cache);
        retire(cache);
    }
    if (own != nullptr) set.caches.erase(CacheList::s_iterator_to(*own));
    set.free_caches.splice(set.free_caches.end(), set.caches);
    if (own != nullptr) set.caches.push_front(*own);
}

// Determines again what the pool's threads have taken.
void count_parked(BucketSet& first) noexcept {
    std::size_t taken = 0;
    std::size_t large_taken = 0;
    first.for_each_series([&](BucketSet& series) {
        for (Cache& cache : series.caches) {
            taken += cache.room().bytes();
            large_taken += cache.large.room_bytes();
        }
    });
    first.shared().parking_limit.begin_again(taken);
    first.shared().large_parking_limit.begin_again(large_taken);
}

}  // namespace

void ThreadRegistry::watch_forks() noexcept {
    const std::lock_guard guard(mutex_);
    (void)set_up_handlers();
}

// Returns false if one of the handlers cannot be set.
bool ThreadRegistry::set_up_handlers() noexcept {
    if (exit_handler_ == platform::no_exit_handler) {
        exit_handler_ = platform::add_thread_exit_handler([] { thread_registry().end_thread(); });
    }
    return exit_handler_ != platform::no_exit_handler && statistics::watch_forks() &&
           platform::set_fork_handlers(
               platform::ForkStage::pools, [] { thread_registry().before_fork(); },
               [] { thread_registry().after_fork_in_parent(); },
               [] { thread_registry().after_fork_in_child(); });
}

// Takes the locks in the order that lib/pool/README.md documents. Locks that all pools share for
// statistics come after these, in handlers of their own.
void ThreadRegistry::before_fork() noexcept {
    set_up_mutex_.lock();
    mutex_.lock();
    for (BucketSet* set = sets_; set != nullptr; set = set->next) set->lock();
    tables_.records().lock();
    watch::guarded_area().lock();
    pages::address_space().lock();
    watch::profiled_blocks().lock();
}

void ThreadRegistry::after_fork_in_parent() noexcept {
    watch::profiled_blocks().unlock();
    pages::address_space().unlock();
    watch::guarded_area().unlock();
    tables_.records().unlock();
    for (BucketSet* set = sets_; set != nullptr; set = set->next) set->unlock();
    mutex_.unlock();
    set_up_mutex_.unlock();
}

// The other threads do not exist in the child. The content of their magazines is not known exactly,
// because they may have been in the middle of a call. A thread that reuses a cache or a table
// resets it.
void ThreadRegistry::after_fork_in_child() noexcept {
    after_fork_in_parent();
    const std::lock_guard guard(mutex_);
    for (BucketSet* set = sets_; set != nullptr; set = set->next) abandon_others(*set);
    tables_.abandon_others(thread_caches == &no_caches ? nullptr : &own_caches());
    for (BucketSet* set = sets_; set != nullptr; set = set->next) {
        if (!set->is_first()) continue;
        set->heap().after_fork_in_child();
        count_parked(*set);
    }
}

}  // namespace tensorpool::blocks
