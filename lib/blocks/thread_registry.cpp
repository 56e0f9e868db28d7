#include "blocks/thread_registry.hpp"

#include <cstdio>
#include <new>
#include <utility>

#include "base/linked_list.hpp"
#include "base/never_destroyed.hpp"
#include "limits/scope_budget.hpp"
#include "platform/platform.hpp"
#include "platform/process/fork_handlers.hpp"
#include "statistics/segment/fork_locks.hpp"
#include "watch/guards/guarded_area.hpp"
#include "watch/profile/profiled_blocks.hpp"

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

constinit base::NeverDestroyed<ThreadRegistry> the_registry;

// POSIX calls thread-exit handlers in at most four rounds. After its third round a thread gets no
// new cache, because no handler would return its blocks. This handler requests a call in each of
// the first three rounds, so that it knows the current round when another handler frees blocks.
constexpr unsigned last_round = 2;
constinit thread_local unsigned ended_rounds TENSORPOOL_INITIAL_EXEC = 0;

}  // namespace

ThreadRegistry& thread_registry() noexcept {
    return the_registry.get();
}

namespace {

// Runs while the library is loaded, before there are other threads. A fork between taking the lock
// and setting the fork handlers would leave the child with a lock that no thread releases.
[[maybe_unused]] const bool watches_forks_from_the_start = (thread_registry().watch_forks(), true);
// Fences are prepared at the same time, because it costs little then.
[[maybe_unused]] const bool prepares_fences_early =
    (thread_registry().prepare_fences_early(), true);

}  // namespace

unsigned ThreadRegistry::take_number() noexcept {
    const std::lock_guard guard(mutex_);
    for (unsigned number = lowest_free_; number < max_pools; ++number) {
        std::uint64_t& word = numbers_[number / 64];
        const std::uint64_t bit = std::uint64_t{1} << number % 64;
        if ((word & bit) != 0) continue;
        word |= bit;
        lowest_free_ = number + 1;
        return number;
    }
    return no_number;
}

void ThreadRegistry::give_back_number(unsigned number) noexcept {
    const std::lock_guard guard(mutex_);
    numbers_[number / 64] &= ~(std::uint64_t{1} << number % 64);
    if (number >= first_number && number < lowest_free_) lowest_free_ = number;
}

void ThreadRegistry::enter(BucketSet& set) noexcept {
    const std::lock_guard guard(mutex_);
    (void)set_up_handlers();
    // In front, so that a fork locks finer series before the first, as the order of locks requires.
    base::link_in_front(sets_, set);
}

void ThreadRegistry::leave(BucketSet& set) noexcept {
    const std::lock_guard guard(mutex_);
    base::unlink(sets_, set);
    for (Cache& cache : set.caches) {
        ThreadCaches& table = *cache.table;
        table.clear_views(set.number());
        Cache*& own = table.own(set.number());
        if (!set.is_marked()) {
            own = nullptr;
        } else {
            if (own != nullptr) own->marked = nullptr;
            table.unlist_exposing(cache);
        }
    }
}

bool ThreadRegistry::name_of(unsigned number, char* name, std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    for (const BucketSet* set = sets_; set != nullptr; set = set->next) {
        if (set->number() != number) continue;
        std::snprintf(name, bytes, "%s", set->name());
        return true;
    }
    return false;
}

Cache* ThreadRegistry::attached(const BucketSet& set) noexcept {
    Cache* const cache = own_cache(set);
    if (cache != nullptr && may_show(set) &&
        &detail::thread_cache(detail::TablePlace(set.number())) == &empty_cache &&
        !hidden_.load(std::memory_order_relaxed)) [[unlikely]] {
        show_again(set);
    }
    return cache;
}

Cache* ThreadRegistry::attach(BucketSet& set) noexcept {
    if (Cache* const cache = attached(set)) [[likely]]
        return cache;
    return attach_slow(set);
}

void ThreadRegistry::show_again(const BucketSet& set) noexcept {
    const std::lock_guard guard(mutex_);
    show(set);
}

Cache* ThreadRegistry::attach_slow(BucketSet& set) noexcept {
    if (!set.may_cache() || ended_rounds > last_round) return nullptr;
    const std::lock_guard guard(mutex_);
    return attach_under_lock(set);
}

Cache* ThreadRegistry::attach_under_lock(BucketSet& set) noexcept {
    ThreadCaches* const table = set_up_handlers() ? own_table() : nullptr;
    if (table == nullptr || !make_leaf(*table, set.number())) return nullptr;
    Cache* const cache = make_cache(set);
    if (cache == nullptr) return nullptr;
    cache->table = table;
    Cache*& own = table->own(set.number());
    (set.is_marked() ? own->marked : own) = cache;
    show(set);
    return cache;
}

// Called under the mutex, so that a concurrent `hide_caches` hides this cache too.
void ThreadRegistry::show(const BucketSet& set) noexcept {
    if (hidden_.load(std::memory_order_relaxed) || !may_show(set)) return;
    ThreadCaches::set_view(*detail::thread_table, set.number(), *own_cache(set));
}

// Of a pool whose blocks the thread's scope charges, inline paths may see only the cache of the
// marked set.
bool ThreadRegistry::may_show(const BucketSet& set) noexcept {
    const bool charges = limits::scope_budget != nullptr && set.may_charge();
    return set.serves_inline() && set.is_marked() == charges;
}

void ThreadRegistry::hide_caches() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_.store(true, std::memory_order_relaxed);
    for (ThreadCaches* table = tables_; table != nullptr; table = table->next) {
        for_each_number(*table, [&](unsigned number) { table->clear_views(number); });
    }
}

void ThreadRegistry::show_caches() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_.store(false, std::memory_order_relaxed);
}

ThreadCaches* ThreadRegistry::own_table() noexcept {
    if (thread_caches != &no_caches) return thread_caches;
    if (free_tables_ == nullptr && abandoned_tables_ != nullptr) reuse_abandoned_table();
    if (free_tables_ == nullptr) {
        void* const memory = records_.allocate(sizeof(ThreadCaches), alignof(ThreadCaches));
        if (memory == nullptr) return nullptr;
        free_tables_ = new (memory) ThreadCaches();
        free_tables_->add_first_leaf();
    }
    // Without the handler the thread's blocks would be lost when it ends.
    if (!platform::call_at_thread_exit(exit_handler_)) return nullptr;
    ThreadCaches* const table = std::exchange(free_tables_, free_tables_->next);
    base::link_in_front(tables_, *table);
    table->pace = {};
    thread_caches = table;
    detail::thread_table = limits::scope_budget == nullptr ? table : &table->in_scope;
    return table;
}

// Returns false if memory is short.
bool ThreadRegistry::make_leaf(ThreadCaches& table, unsigned number) noexcept {
    if (table.has_leaf_of(number)) return true;
    if (free_leaves_ == nullptr) {
        void* const memory = records_.allocate(sizeof(OwnLeaf), alignof(OwnLeaf));
        if (memory == nullptr) return false;
        free_leaves_ = new (memory) OwnLeaf();
    }
    table.add_leaf_of(number, *std::exchange(free_leaves_, free_leaves_->next_free));
    return true;
}

Cache* ThreadRegistry::make_cache(BucketSet& set) noexcept {
    if (set.free_caches.empty()) {
        void* const memory = set.records().allocate(sizeof(Cache), alignof(Cache));
        if (memory == nullptr) return nullptr;
        set.free_caches.push_front(*new (memory) Cache());
    }
    statistics::OwnedCounters* const owned = set.counters().take(set.series());
    if (owned == nullptr) return nullptr;
    Cache& cache = set.free_caches.front();
    set.free_caches.pop_front();
    cache.begin(set, *owned);
    if (set.is_first()) set.parking_limit().add_thread();
    set.caches.push_front(cache);
    return &cache;
}

template <class Function>
void ThreadRegistry::take_caches(ThreadCaches& table, Function function) noexcept {
    for_each_number(table, [&](unsigned number) {
        Cache* const cache = std::exchange(table.own(number), nullptr);
        if (cache == nullptr) return;
        table.clear_views(number);
        if (Cache* const marked = std::exchange(cache->marked, nullptr)) function(*marked);
        function(*cache);
    });
}

void ThreadRegistry::end_use(Cache& cache) noexcept {
    BucketSet& set = cache.set();
    set.counters().give_back(cache.owned_counters());
    if (set.is_first()) set.parking_limit().remove_thread();
}

// REQUIRES: the table is in no list and contains no caches.
void ThreadRegistry::free_table(ThreadCaches& table) noexcept {
    table.forget_exposing();
    for (unsigned index = 0; index < detail::ThreadTable::leaf_count; ++index) {
        OwnLeaf* const leaf = table.remove_leaf(index);
        if (leaf != nullptr) leaf->next_free = std::exchange(free_leaves_, leaf);
    }
    table.next = free_tables_;
    free_tables_ = &table;
}

void ThreadRegistry::end_thread() noexcept {
    if (++ended_rounds <= last_round) (void)platform::call_at_thread_exit(exit_handler_);
    if (thread_caches == &no_caches) return;
    const std::lock_guard guard(mutex_);
    ThreadCaches& table = own_caches();
    take_caches(table, [](Cache& cache) {
        pages::Changes changes;  // not reported; the next call with changes reports the capacity
        cache.give_back_all(changes);
        end_use(cache);
        cache.set().caches.erase(CacheList::s_iterator_to(cache));
        cache.set().free_caches.push_front(cache);
    });
    base::unlink(tables_, table);
    free_table(table);
    thread_caches = &no_caches;
    detail::thread_table = &no_caches;
}

// If a handler cannot be set, no thread gets a cache: its blocks would be lost when it ends, or the
// child of a fork would hang.
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

void ThreadRegistry::watch_forks() noexcept {
    const std::lock_guard guard(mutex_);
    (void)set_up_handlers();
}

// Takes the locks in the order that lib/pool/README.md documents. Locks that all pools share for
// statistics come after these, in handlers of their own.
void ThreadRegistry::before_fork() noexcept {
    set_up_mutex_.lock();
    mutex_.lock();
    for (BucketSet* set = sets_; set != nullptr; set = set->next) set->lock();
    records_.lock();
    watch::guarded_area().lock();
    pages::address_space().lock();
    watch::profiled_blocks().lock();
}

void ThreadRegistry::after_fork_in_parent() noexcept {
    watch::profiled_blocks().unlock();
    pages::address_space().unlock();
    watch::guarded_area().unlock();
    records_.unlock();
    for (BucketSet* set = sets_; set != nullptr; set = set->next) set->unlock();
    mutex_.unlock();
    set_up_mutex_.unlock();
}

void ThreadRegistry::after_fork_in_child() noexcept {
    after_fork_in_parent();
    const std::lock_guard guard(mutex_);
    abandon_others();
}

// The other threads do not exist in the child. The content of their magazines is not known exactly,
// because they may have been in the middle of a call. The system copies each page that the child
// writes to. So their caches and tables are only read here; a thread that reuses one resets it.
void ThreadRegistry::abandon_others() noexcept {
    for (BucketSet* set = sets_; set != nullptr; set = set->next) abandon_others(*set);
    ThreadCaches* const own = thread_caches == &no_caches ? nullptr : &own_caches();
    if (own != nullptr) base::unlink(tables_, *own);
    ThreadCaches** end = &abandoned_tables_;
    while (*end != nullptr) end = &(*end)->next;
    *end = std::exchange(tables_, nullptr);
    if (own != nullptr) base::link_in_front(tables_, *own);
    for (BucketSet* set = sets_; set != nullptr; set = set->next) {
        if (!set->is_first()) continue;
        set->heap().after_fork_in_child();
        std::size_t taken = 0;
        std::size_t large_taken = 0;
        set->for_each_series([&](const BucketSet& series) {
            for (const Cache& cache : series.caches) {
                taken += cache.may_park_bytes();
                large_taken += cache.may_park_large_bytes();
            }
        });
        set->parking_limit().begin_again(taken);
        set->large_parking_limit().begin_again(large_taken);
    }
}

void ThreadRegistry::abandon_others(BucketSet& set) noexcept {
    Cache* const own = own_cache(set);
    for (Cache& cache : set.caches) {
        if (&cache == own) continue;
        cache.abandon();
        end_use(cache);
    }
    if (own != nullptr) set.caches.erase(CacheList::s_iterator_to(*own));
    set.free_caches.splice(set.free_caches.end(), set.caches);
    if (own != nullptr) set.caches.push_front(*own);
}

void ThreadRegistry::reuse_abandoned_table() noexcept {
    ThreadCaches& table = *std::exchange(abandoned_tables_, abandoned_tables_->next);
    for_each_number(table, [&](unsigned number) {
        table.own(number) = nullptr;
        table.clear_views(number);
    });
    free_table(table);
}

}  // namespace tensorpool::blocks
