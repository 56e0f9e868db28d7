#include "blocks/thread_registry.hpp"

#include <cstdio>
#include <new>
#include <utility>

#include "base/never_destroyed.hpp"
#include "platform/platform.hpp"
#include "platform/process/fork_handlers.hpp"
#include "statistics/segment/fork_locks.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

// Never written: it looks empty to pop and full to push.
constinit ThreadCache empty_cache;

template <std::size_t... Index>
constexpr ThreadTable table_of_empty_caches(std::index_sequence<Index...>) noexcept {
    return {{(static_cast<void>(Index), &empty_cache)...}};
}

constinit ThreadTable no_caches =
    table_of_empty_caches(std::make_index_sequence<cached_pool_count + 1>());

}  // namespace

constinit thread_local ThreadTable* thread_table TENSORPOOL_INITIAL_EXEC = &no_caches;

}  // namespace abi_2
}  // namespace tensorpool::detail

namespace tensorpool::blocks {
namespace {

constinit base::NeverDestroyed<ThreadRegistry> the_registry;

// POSIX calls thread-exit handlers in four rounds at most: after its third a thread gets no new
// cache, which nobody would take back. Ours asks for the first three, so that it knows which one it
// is in when another's handler frees.
constexpr unsigned last_round = 2;
constinit thread_local unsigned ended_rounds TENSORPOOL_INITIAL_EXEC = 0;

}  // namespace

ThreadRegistry& thread_registry() noexcept {
    return the_registry.get();
}

namespace {

// While the library is loaded, before there are threads: a fork that came between taking the lock
// and asking to be told of forks would leave the child a lock that nobody gives back.
[[maybe_unused]] const bool watches_forks_from_the_start = (thread_registry().watch_forks(), true);
// And what costs little then.
[[maybe_unused]] const bool prepares_fences_early = (thread_registry().prepare_fences_early(), true);

}  // namespace

/// A thread's caches: those that it has, and what its inline paths see of them, which is the empty
/// one for all while they are hidden.
struct ThreadRegistry::Table {
    detail::ThreadTable view;
    std::array<Cache*, detail::cached_pool_count> own = {};
    Table* next = nullptr;
};

unsigned ThreadRegistry::take_number() noexcept {
    const std::lock_guard guard(mutex_);
    for (unsigned number = lowest_free_; number < most_pools; ++number) {
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
    if (number != global_number && number < lowest_free_) lowest_free_ = number;
}

void ThreadRegistry::enter(BucketSet& set) noexcept {
    const std::lock_guard guard(mutex_);
    (void)set_up_handlers();
    set.next = sets_;
    sets_ = &set;
}

void ThreadRegistry::leave(BucketSet& set) noexcept {
    const std::lock_guard guard(mutex_);
    BucketSet** link = &sets_;
    while (*link != &set) link = &(*link)->next;
    *link = set.next;
    if (!set.may_cache()) return;
    for (Table* table = tables_; table != nullptr; table = table->next) {
        table->view.caches[set.number()].store(&detail::empty_cache, std::memory_order_relaxed);
        table->own[set.number()] = nullptr;
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
    if (!set.may_cache() || detail::thread_table == &detail::no_caches) return nullptr;
    Table& table = *reinterpret_cast<Table*>(detail::thread_table);
    Cache* const cache = table.own[set.number()];
    if (cache != nullptr && &detail::thread_cache(set.number()) == &detail::empty_cache &&
        !hidden_.load(std::memory_order_relaxed)) [[unlikely]] {
        show_again(table, set.number());
    }
    return cache;
}

Cache* ThreadRegistry::attach(BucketSet& set) noexcept {
    if (Cache* const cache = attached(set)) [[likely]]
        return cache;
    return attach_slow(set);
}

void ThreadRegistry::show_again(Table& table, unsigned number) noexcept {
    const std::lock_guard guard(mutex_);
    show(table, number);
}

Cache* ThreadRegistry::attach_slow(BucketSet& set) noexcept {
    if (!set.may_cache() || ended_rounds > last_round) return nullptr;
    const std::lock_guard guard(mutex_);
    Table* const table = set_up_handlers() ? own_table() : nullptr;
    Cache* const cache = table == nullptr ? nullptr : make_cache(set);
    if (cache == nullptr) return nullptr;
    table->own[set.number()] = cache;
    show(*table, set.number());
    return cache;
}

// Under the mutex: whoever hides meanwhile hides this one too.
void ThreadRegistry::show(Table& table, unsigned number) noexcept {
    if (hidden_.load(std::memory_order_relaxed)) return;
    table.view.caches[number].store(table.own[number], std::memory_order_relaxed);
}

void ThreadRegistry::hide_caches() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_.store(true, std::memory_order_relaxed);
    for (Table* table = tables_; table != nullptr; table = table->next) {
        for (auto& entry : table->view.caches) {
            entry.store(&detail::empty_cache, std::memory_order_relaxed);
        }
    }
}

void ThreadRegistry::show_caches() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_.store(false, std::memory_order_relaxed);
}

ThreadRegistry::Table* ThreadRegistry::own_table() noexcept {
    if (detail::thread_table != &detail::no_caches) {
        return reinterpret_cast<Table*>(detail::thread_table);
    }
    if (free_tables_ == nullptr) {
        void* const memory = records_.allocate(sizeof(Table), alignof(Table));
        if (memory == nullptr) return nullptr;
        free_tables_ =
            new (memory) Table{.view = detail::table_of_empty_caches(
                                   std::make_index_sequence<detail::cached_pool_count + 1>())};
    }
    // Without the handler the thread's blocks would be lost when it ends.
    if (!platform::call_at_thread_exit(exit_handler_)) return nullptr;
    Table* const table = std::exchange(free_tables_, free_tables_->next);
    table->next = tables_;
    tables_ = table;
    detail::thread_table = &table->view;
    return table;
}

Cache* ThreadRegistry::make_cache(BucketSet& set) noexcept {
    if (set.free_caches.empty()) {
        void* const memory = set.records().allocate(sizeof(Cache), alignof(Cache));
        if (memory == nullptr) return nullptr;
        set.free_caches.push_front(*new (memory) Cache());
    }
    statistics::CounterSlot* const slot = set.slots().take();
    if (slot == nullptr) return nullptr;
    Cache& cache = set.free_caches.front();
    set.free_caches.pop_front();
    cache.begin(set, *slot);
    set.parking_limit().add_thread();
    set.caches.push_front(cache);
    return &cache;
}

template <class Function>
void ThreadRegistry::for_each_cache(Table& table, Function function) noexcept {
    for (unsigned number = 0; number < detail::cached_pool_count; ++number) {
        Cache* const cache = std::exchange(table.own[number], nullptr);
        if (cache == nullptr) continue;
        table.view.caches[number].store(&detail::empty_cache, std::memory_order_relaxed);
        function(*cache);
    }
}

void ThreadRegistry::detach(Cache& cache) noexcept {
    BucketSet& set = cache.set();
    set.slots().give_back(cache.slot());
    set.parking_limit().remove_thread();
    set.caches.erase(CacheList::s_iterator_to(cache));
    set.free_caches.push_front(cache);
}

void ThreadRegistry::free_table(Table& table) noexcept {
    Table** link = &tables_;
    while (*link != &table) link = &(*link)->next;
    *link = table.next;
    table.next = free_tables_;
    free_tables_ = &table;
}

void ThreadRegistry::end_thread() noexcept {
    if (++ended_rounds <= last_round) (void)platform::call_at_thread_exit(exit_handler_);
    if (detail::thread_table == &detail::no_caches) return;
    const std::lock_guard guard(mutex_);
    Table& table = *reinterpret_cast<Table*>(detail::thread_table);
    for_each_cache(table, [this](Cache& cache) {
        cache.give_back_all();
        detach(cache);
    });
    free_table(table);
    detail::thread_table = &detail::no_caches;
}

// Without both no thread gets a cache: its blocks would be lost, or a child of a fork would hang.
bool ThreadRegistry::set_up_handlers() noexcept {
    if (exit_handler_ == platform::no_exit_handler) {
        exit_handler_ = platform::add_thread_exit_handler([] { thread_registry().end_thread(); });
    }
    return exit_handler_ != platform::no_exit_handler && statistics::watch_forks() &&
           platform::set_fork_handlers(
               platform::ForkPlace::pools, [] { thread_registry().before_fork(); },
               [] { thread_registry().after_fork_in_parent(); },
               [] { thread_registry().after_fork_in_child(); });
}

void ThreadRegistry::watch_forks() noexcept {
    const std::lock_guard guard(mutex_);
    (void)set_up_handlers();
}

// In the order of locks that lib/README.md has. What statistics share comes after these, by
// handlers of their own.
void ThreadRegistry::before_fork() noexcept {
    set_up_mutex_.lock();
    mutex_.lock();
    for (BucketSet* set = sets_; set != nullptr; set = set->next) set->lock();
    records_.lock();
    pages::address_space().lock();
}

void ThreadRegistry::after_fork_in_parent() noexcept {
    pages::address_space().unlock();
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

// The other threads are not in the child. What their magazines held cannot be told for certain:
// they may have been in the middle of a call.
void ThreadRegistry::abandon_others() noexcept {
    for (Table* table = tables_; table != nullptr;) {
        Table* const next = table->next;
        if (&table->view != detail::thread_table) {
            for_each_cache(*table, [this](Cache& cache) {
                cache.abandon();
                detach(cache);
            });
            free_table(*table);
        }
        table = next;
    }
    for (BucketSet* set = sets_; set != nullptr; set = set->next) {
        std::size_t taken = 0;
        for (const Cache& cache : set->caches) taken += cache.may_park_bytes();
        set->parking_limit().begin_again(taken);
    }
}

}  // namespace tensorpool::blocks
