#include "blocks/thread_registry.hpp"

#include "platform/process/fork_handlers.hpp"
#include "watch/guards/guarded_area.hpp"
#include "watch/profile/profiled_blocks.hpp"

namespace tensorpool::blocks {

ThreadCaches* ThreadTables::add() noexcept {
    if (free_ == nullptr && abandoned_ != nullptr) {
        ThreadCaches& table = *std::exchange(abandoned_, abandoned_->next);
        table.for_each_number([&](unsigned number) {
            table.own(number) = nullptr;
            table.clear_views(number);
        });
        free(table);
    }
    if (free_ == nullptr) {
        void* const memory = records_.allocate(sizeof(ThreadCaches), alignof(ThreadCaches));
        if (memory == nullptr) return nullptr;
        free_ = new (memory) ThreadCaches();
        free_->add_first_leaf();
    }
    ThreadCaches& table = *std::exchange(free_, free_->next);
    base::link_in_front(running_, table);
    table.pace = {};
    return &table;
}

bool ThreadTables::add_leaf(ThreadCaches& table, unsigned number) noexcept {
    if (table.has_leaf_of(number)) return true;
    if (free_leaves_ == nullptr) {
        void* const memory = records_.allocate(sizeof(OwnLeaf), alignof(OwnLeaf));
        if (memory == nullptr) return false;
        free_leaves_ = new (memory) OwnLeaf();
    }
    table.add_leaf_of(number, *std::exchange(free_leaves_, free_leaves_->next_free));
    return true;
}

void ThreadTables::free(ThreadCaches& table) noexcept {
    table.forget_exposing();
    for (unsigned index = 0; index < detail::ThreadTable::leaf_count; ++index) {
        OwnLeaf* const leaf = table.remove_leaf(index);
        if (leaf != nullptr) leaf->next_free = std::exchange(free_leaves_, leaf);
    }
    table.next = std::exchange(free_, &table);
}

void ThreadTables::abandon_others(ThreadCaches* own) noexcept {
    if (own != nullptr) base::unlink(running_, *own);
    ThreadCaches** end = &abandoned_;
    while (*end != nullptr) end = &(*end)->next;
    *end = std::exchange(running_, nullptr);
    if (own != nullptr) base::link_in_front(running_, *own);
}

namespace {

// POSIX calls thread-exit handlers in at most four rounds. After its third round a thread gets no
// new cache, because no handler would return its blocks. This handler requests a call in each of
// the first three rounds, so that it knows the current round when another handler frees blocks.
constexpr unsigned last_round = 2;
constinit thread_local unsigned ended_rounds TENSORPOOL_INITIAL_EXEC = 0;

// Returns a cache in use. Returns nullptr if memory is short.
Cache* make_cache(BucketSet& set) noexcept {
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
    if (set.is_first()) set.shared().parking_limit.add_thread();
    set.caches.push_front(cache);
    return &cache;
}

// Of a pool whose blocks the thread's scope charges, inline paths may see only the cache of the
// marked set.
bool may_show(const BucketSet& set) noexcept {
    const bool charges = limits::scope_budget != nullptr && set.may_charge();
    return set.serves_inline() && set.is_marked() == charges;
}

// Guarded by the registry's lock.
constinit std::array<std::uint64_t, PoolNumbers::end / 64 + 1> taken = {};
constinit unsigned lowest_free = PoolNumbers::first;

// Runs while the library is loaded, before there are other threads. A fork between taking the lock
// and setting the fork handlers would leave the child with a lock that no thread releases.
[[maybe_unused]] const bool watches_forks_from_the_start = (thread_registry().watch_forks(), true);

// The system copies each page that the child writes to, so the caches themselves are only read.
// Returns whether there were any of other threads.
bool abandon_others(BucketSet& set) noexcept {
    Cache* const own = own_cache(set);
    bool any = false;
    for (Cache& cache : set.caches) {
        if (&cache == own) continue;
        abandon(cache);
        retire(cache);
        any = true;
    }
    if (own != nullptr) set.caches.erase(CacheList::s_iterator_to(*own));
    set.free_caches.splice(set.free_caches.end(), set.caches);
    if (own != nullptr) set.caches.push_front(*own);
    return any;
}

// Determines again what the pool's threads have taken.
void count_parked(BucketSet& first) noexcept {
    std::size_t small_taken = 0;
    std::size_t large_taken = 0;
    first.for_each_series([&](BucketSet& series) {
        for (Cache& cache : series.caches) {
            small_taken += cache.room().bytes();
            large_taken += cache.large.room_bytes();
        }
    });
    first.shared().parking_limit.begin_again(small_taken);
    first.shared().large_parking_limit.begin_again(large_taken);
}

}  // namespace

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

BucketSet* ThreadRegistry::marked_set(BucketSet& first) noexcept {
    BucketSet* made = first.shared().marked.load(std::memory_order_acquire);
    if (made != nullptr) [[likely]]
        return made;
    const std::lock_guard guard(mutex_);
    made = first.shared().marked.load(std::memory_order_relaxed);
    if (made != nullptr) return made;
    void* const memory = first.records().allocate(sizeof(BucketSet), alignof(BucketSet));
    if (memory == nullptr) return nullptr;
    made = new (memory) BucketSet(first, 0, BucketSet::HasMarks::yes);
    base::link_in_front(sets_, *made);
    first.shared().marked.store(made, std::memory_order_release);
    return made;
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

Cache* ThreadRegistry::attach_slow(BucketSet& set) noexcept {
    if (!set.may_cache() || ended_rounds > last_round) return nullptr;
    const std::lock_guard guard(mutex_);
    ThreadCaches* const table = own_table();
    if (table == nullptr || !tables_.add_leaf(*table, set.number())) return nullptr;
    Cache* const cache = make_cache(set);
    if (cache == nullptr) return nullptr;
    cache->table = table;
    Cache*& own = table->own(set.number());
    (set.is_marked() ? own->marked : own) = cache;
    show(set);
    return cache;
}

// If a handler cannot be set, no thread gets a cache: its blocks would be lost when it ends, or the
// child of a fork would hang.
ThreadCaches* ThreadRegistry::own_table() noexcept {
    if (!set_up_handlers()) return nullptr;
    if (thread_caches != &no_caches) return thread_caches;
    ThreadCaches* const table =
        platform::call_at_thread_exit(exit_handler_) ? tables_.add() : nullptr;
    if (table == nullptr) return nullptr;
    thread_caches = table;
    detail::thread_table = limits::scope_budget == nullptr ? table : &table->in_scope;
    return table;
}

// Called under the mutex, so that a concurrent `hide_caches` hides this cache too.
void ThreadRegistry::show(const BucketSet& set) noexcept {
    if (hidden_.load(std::memory_order_relaxed) || !may_show(set)) return;
    ThreadCaches::set_view(*detail::thread_table, set.number(), *own_cache(set));
}

void ThreadRegistry::hide_caches() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_.store(true, std::memory_order_relaxed);
    tables_.for_each([](ThreadCaches& table) {
        table.for_each_number([&](unsigned number) { table.clear_views(number); });
    });
}

void ThreadRegistry::end_thread() noexcept {
    if (++ended_rounds <= last_round) (void)platform::call_at_thread_exit(exit_handler_);
    if (thread_caches == &no_caches) return;
    const std::lock_guard guard(mutex_);
    ThreadCaches& table = own_caches();
    const auto end_cache = [](Cache& cache) {
        pages::Changes changes;  // not reported; the next call with changes reports the capacity
        cache.give_back_all(changes);
        retire(cache);
        cache.set().caches.erase(CacheList::s_iterator_to(cache));
        cache.set().free_caches.push_front(cache);
    };
    table.for_each_number([&](unsigned number) {
        Cache* const cache = std::exchange(table.own(number), nullptr);
        if (cache == nullptr) return;
        table.clear_views(number);
        if (Cache* const marked = std::exchange(cache->marked, nullptr)) end_cache(*marked);
        end_cache(*cache);
    });
    tables_.remove(table);
    thread_caches = &no_caches;
    detail::thread_table = &no_caches;
}

void retire(Cache& cache) noexcept {
    BucketSet& set = cache.set();
    set.counters().give_back(cache.owned_counters());
    if (set.is_first()) set.shared().parking_limit.remove_thread();
}

unsigned PoolNumbers::take() noexcept {
    const std::lock_guard guard(thread_registry());
    for (unsigned number = lowest_free; number < end; ++number) {
        std::uint64_t& word = taken[number / 64];
        const std::uint64_t bit = std::uint64_t{1} << number % 64;
        if ((word & bit) != 0) continue;
        word |= bit;
        lowest_free = number + 1;
        return number;
    }
    return none;
}

void PoolNumbers::give_back(unsigned number) noexcept {
    const std::lock_guard guard(thread_registry());
    taken[number / 64] &= ~(std::uint64_t{1} << number % 64);
    if (number >= first && number < lowest_free) lowest_free = number;
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
    for (BucketSet* set = sets_; set != nullptr; set = set->next) {
        if (!set->is_first()) continue;
        bool any = false;
        set->for_each_series([&](BucketSet& series) { any |= abandon_others(series); });
        set->heap().after_fork_in_child();
        if (any) count_lost(*set);
        count_parked(*set);
    }
    tables_.abandon_others(thread_caches == &no_caches ? nullptr : &own_caches());
}

}  // namespace tensorpool::blocks
