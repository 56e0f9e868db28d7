#pragma once

#include "blocks/thread_caches.hpp"

namespace tensorpool::blocks {

/// The numbers of pools, which are their positions in every thread's table.
struct PoolNumbers {
    /// The number reserved for the global pool, whose inline fast path uses it before the pool is
    /// set up. The numbers between it and `first` are reserved for its finer series.
    static constexpr unsigned global = 0;
    static constexpr unsigned first = global + base::series_count;
    /// All numbers are less than this. The page map and the address space have 16 bits for them, of
    /// which the address space uses three values for other purposes.
    static constexpr unsigned end = pages::AddressSpace::max_pools;
    static constexpr unsigned none = ~0U;

    /// Takes the lowest free number. Returns `none` if there is none. Thread-safe.
    static unsigned take() noexcept;
    static void give_back(unsigned number) noexcept;
};

/// The tables of all threads that have caches, and what ended threads left for others: tables and
/// leaves without caches. They are never unmapped. Guarded by the registry's lock.
class ThreadTables {
public:
    constexpr ThreadTables() noexcept = default;

    /// Returns a table for a thread. Returns nullptr if memory is short.
    ThreadCaches* add() noexcept;
    /// Makes the leaf of this number, unless the table has it. Returns false if memory is short.
    bool add_leaf(ThreadCaches& table, unsigned number) noexcept;
    /// Ends the use of a table that contains no caches.
    void remove(ThreadCaches& table) noexcept {
        base::unlink(running_, table);
        free(table);
    }
    /// For the child of a fork: abandons all tables except `own`, which may be nullptr. They are
    /// changed when they are used again.
    void abandon_others(ThreadCaches* own) noexcept;

    template <class Function>
    void for_each(Function function) noexcept {
        for (ThreadCaches* table = running_; table != nullptr; table = table->next) {
            function(*table);
        }
    }

    /// The lock of their memory, which a fork takes.
    pages::RecordArena& records() noexcept { return records_; }

private:
    void free(ThreadCaches& table) noexcept;

    pages::RecordArena records_;
    ThreadCaches* running_ = nullptr;
    ThreadCaches* free_ = nullptr;
    // In the child of a fork: of threads that do not exist there, as they left them.
    ThreadCaches* abandoned_ = nullptr;
    OwnLeaf* free_leaves_ = nullptr;
};

/// The registry of all pools and of the threads that have caches for them. A thread that ends
/// returns its blocks; a pool that is destroyed removes its caches from all threads. There is one
/// registry per process, and it is never destroyed. Its lock guards the lists of caches of all
/// sets, and is held while blocks of other threads are taken back. Thread-safe.
class ThreadRegistry : public base::Lockable {
public:
    constexpr ThreadRegistry() noexcept = default;

    /// Adds a set, so that threads can attach to it. From now on a fork takes the set's locks.
    void enter(BucketSet& set) noexcept {
        const std::lock_guard guard(mutex_);
        (void)set_up_handlers();
        // In front, so that a fork locks finer series before the first, as the order of locks
        // requires.
        base::link_in_front(sets_, set);
    }
    /// Removes a set and clears its entry in every thread's table. REQUIRES: no call to the pool is
    /// in progress.
    void leave(BucketSet& set) noexcept;
    /// Returns the marked set of the pool of `first`, which is made and entered if there is none.
    /// Returns nullptr if memory is short.
    BucketSet* marked_set(BucketSet& first) noexcept;
    /// Copies the name of the pool with this number into `name`, truncated to `bytes` bytes with a
    /// terminating zero. Returns false if there is no such pool.
    bool name_of(unsigned number, char* name, std::size_t bytes) noexcept;

    /// Returns the calling thread's cache for this set; makes one if there is none. Returns nullptr
    /// if the pool has no caches, if the thread is in its last destructors, or if memory is short.
    /// Calls then use the spans directly.
    Cache* attach(BucketSet& set) noexcept {
        if (Cache* const cache = attached(set)) [[likely]]
            return cache;
        return attach_slow(set);
    }
    /// Returns the calling thread's cache for this set, or nullptr if it has none.
    Cache* attached(const BucketSet& set) noexcept;

    /// From now on, makes every call of every thread take the slow path, where its cache is still
    /// used. For recorders, which must see each call. A call that is in progress may go unseen.
    void hide_caches() noexcept;
    /// Ends `hide_caches`. Each thread's caches become visible again on its next slow path.
    void show_caches() noexcept {
        const std::lock_guard guard(mutex_);
        hidden_.store(false, std::memory_order_relaxed);
    }

    /// The lock held while the global pool is set up. It is the first lock that a fork takes.
    /// Callers call `watch_forks` before they take it.
    std::mutex& set_up_mutex() noexcept { return set_up_mutex_; }

    /// Sets the handlers that take all locks around a fork.
    void watch_forks() noexcept {
        const std::lock_guard guard(mutex_);
        (void)set_up_handlers();
    }
    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

    void end_thread() noexcept;

private:
    bool set_up_handlers() noexcept;
    ThreadCaches* own_table() noexcept;
    void show(const BucketSet& set) noexcept;
    // Separate functions, so that `attach` saves no registers for them.
    [[gnu::noinline]] Cache* attach_slow(BucketSet& set) noexcept;
    [[gnu::noinline]] void show_again(const BucketSet& set) noexcept {
        const std::lock_guard guard(mutex_);
        show(set);
    }

    std::mutex set_up_mutex_;
    // Guarded by mutex_, unless noted otherwise:
    ThreadTables tables_;
    BucketSet* sets_ = nullptr;
    // Written before the first thread needs it, so a thread that ends may read it without the
    // mutex.
    platform::ExitHandler exit_handler_ = platform::no_exit_handler;
    // Also read without the mutex. A thread that reads an old value checks again under the mutex.
    std::atomic<bool> hidden_ = false;
};

/// Ends the use of a cache that parks nothing. The caller holds the registry's lock and takes the
/// cache out of its set's list.
void retire(Cache& cache) noexcept;

inline ThreadRegistry& thread_registry() noexcept {
    return base::the_only<ThreadRegistry>.get();
}

}  // namespace tensorpool::blocks
