#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "blocks/bucket_set.hpp"
#include "blocks/thread_caches.hpp"
#include "platform/platform.hpp"

namespace tensorpool::blocks {

/// The registry of all pools and of the threads that have caches for them. A thread that ends
/// returns its blocks; a pool that is destroyed removes its caches from all threads. There is one
/// registry per process, and it is never destroyed. Thread-safe.
class ThreadRegistry {
public:
    constexpr ThreadRegistry() noexcept = default;

    /// Takes the lowest free number, for a new pool. Returns `no_number` if there is none.
    unsigned take_number() noexcept;
    void give_back_number(unsigned number) noexcept;
    static constexpr unsigned no_number = ~0U;
    /// The number reserved for the global pool, whose inline fast path uses it before the pool is
    /// set up. The numbers between it and `first_number` are reserved for its finer series.
    static constexpr unsigned global_number = 0;
    static constexpr unsigned first_number = global_number + base::series_count;
    /// Pool numbers are less than this. The page map and the address space have 16 bits for them,
    /// of which the address space uses three values for other purposes.
    static constexpr unsigned max_pools = pages::AddressSpace::max_pools;

    /// Adds a set, so that threads can attach to it. From now on a fork takes the set's locks.
    void enter(BucketSet& set) noexcept;
    /// Removes a set and clears its entry in every thread's table. REQUIRES: no call to the pool is
    /// in progress.
    void leave(BucketSet& set) noexcept;

    /// Returns the calling thread's cache for this set; makes one if there is none. Returns nullptr
    /// if the pool has no caches, if the thread is in its last destructors, or if memory is short.
    /// Calls then use the spans directly.
    Cache* attach(BucketSet& set) noexcept;
    /// Returns the calling thread's cache for this set, or nullptr if it has none.
    Cache* attached(const BucketSet& set) noexcept;

    /// Gives the calling thread's parked blocks, of all series of the pool, to the depots and to
    /// the page heap.
    void give_back_own(BucketSet& set, pages::Changes& changes) noexcept;

    // The marked set of a pool (thread_registry_marked.cpp).
    /// Returns the marked set of the pool of `first`, which is made if there is none. Returns
    /// nullptr if memory is short.
    BucketSet* marked_set(BucketSet& first) noexcept;
    /// Returns the calling thread's cache of that set; makes both if needed. Returns nullptr where
    /// `attach` does.
    Cache* attach_marked(BucketSet& first) noexcept;
    /// Called when the budget of the calling thread's scope changed: conceals the blocks that its
    /// caches expose, and shows inline paths the other view of its caches.
    void change_scope() noexcept;
    /// Returns whether a cache of the pool of `first` exposes blocks that are charged to `budget`
    /// or to one below it.
    bool exposes_within(BucketSet& first, const detail::BudgetNode& budget) noexcept;
    /// Called before blocks of the marked set are handed out. If one does not lie at the low
    /// addresses, which are used up, inline frees recognize no block of the pool from now on.
    void note_addresses(BucketSet& set, void* const* blocks, std::size_t count) noexcept {
        const auto lies_low = [&](const void* block) { return set.lies_low(block); };
        if (!std::all_of(blocks, blocks + count, lies_low)) [[unlikely]]
            hide_frees(set.first());
    }

    /// From now on, makes every call of every thread take the slow path, where its cache is still
    /// used. For recorders, which must see each call. A call that is in progress may go unseen.
    void hide_caches() noexcept;
    /// Ends `hide_caches`. Each thread's caches become visible again on its next slow path.
    void show_caches() noexcept;

    /// Returns parked blocks of the set's pool to their spans, from magazines of other threads: of
    /// threads that made no call since the last such check (`idle`); of any threads, until half of
    /// the limit is free (`enough`); or of all (`everyone`). A thread that is inside a slow path
    /// keeps its blocks; then the function returns false. On systems without fences of all threads
    /// nothing is taken. The caller holds no lock.
    bool take_back(BucketSet& set, TakeFrom from, pages::Changes& changes) noexcept;
    /// Returns whether `take_back` works on this system. If it does not, blocks that one thread
    /// keeps are unusable for others.
    bool can_take_back() noexcept;
    /// Waits until no `take_back` is in progress.
    void wait_for_take_back() noexcept { const std::lock_guard guard(mutex_); }

    /// Copies the name of the pool with this number into `name`, truncated to `bytes` bytes with a
    /// terminating zero. Returns false if there is no such pool.
    bool name_of(unsigned number, char* name, std::size_t bytes) noexcept;

    /// The lock held while the global pool is set up. It is the first lock that a fork takes.
    /// Callers call `watch_forks` before they take it.
    std::mutex& set_up_mutex() noexcept { return set_up_mutex_; }
    /// Sets the handlers that take all locks around a fork.
    void watch_forks() noexcept;
    /// Prepares fences of all threads while the library is loaded, when the process has one thread
    /// and preparing them is cheap.
    void prepare_fences_early() noexcept;

    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;
    void end_thread() noexcept;

private:
    bool set_up_handlers() noexcept;
    ThreadCaches* own_table() noexcept;
    bool make_leaf(ThreadCaches& table, unsigned number) noexcept;
    static bool may_show(const BucketSet& set) noexcept;
    void show(const BucketSet& set) noexcept;
    BucketSet* marked_set_under_lock(BucketSet& first) noexcept;
    void hide_frees(BucketSet& first) noexcept;
    // Separate functions, so that `attach` saves no registers for them.
    [[gnu::noinline]] Cache* attach_slow(BucketSet& set) noexcept;
    [[gnu::noinline]] void show_again(const BucketSet& set) noexcept;
    Cache* attach_under_lock(BucketSet& set) noexcept;
    Cache* make_cache(BucketSet& set) noexcept;
    static void end_use(Cache& cache) noexcept;
    void abandon_others() noexcept;
    static void abandon_others(BucketSet& set) noexcept;
    void reuse_abandoned_table() noexcept;
    void free_table(ThreadCaches& table) noexcept;
    bool has_fences() noexcept;
    static void choose(BucketSet& set, const Cache* own, TakeFrom from, std::size_t& enough,
                       CacheList& chosen) noexcept;
    bool take_back(CacheList& caches, pages::Changes& changes) noexcept;
    template <class Function>
    static void for_each_number(ThreadCaches& table, Function function) noexcept;
    template <class Function>
    static void take_caches(ThreadCaches& table, Function function) noexcept;

    std::mutex set_up_mutex_;
    std::mutex mutex_;
    // Guarded by mutex_, unless noted otherwise:
    pages::RecordArena records_;
    ThreadCaches* tables_ = nullptr;  // of running threads
    ThreadCaches* free_tables_ = nullptr;
    // In the child of a fork: of threads that do not exist there, as they left them.
    ThreadCaches* abandoned_tables_ = nullptr;
    OwnLeaf* free_leaves_ = nullptr;
    BucketSet* sets_ = nullptr;
    // Written before the first thread needs it, so a thread that ends may read it without the
    // mutex.
    platform::ExitHandler exit_handler_ = platform::no_exit_handler;
    // Written under the mutex. Also read without it. Relaxed: both the old and the new value are
    // valid for a reader.
    enum class Fences : std::uint8_t { unknown, none, ready };
    std::atomic<Fences> fences_ = Fences::unknown;
    // Also read without the mutex. A thread that reads an old value checks again under the mutex.
    std::atomic<bool> hidden_ = false;
    std::array<std::uint64_t, max_pools / 64 + 1> numbers_ = {};
    unsigned lowest_free_ = first_number;
};

// Calls `function` with all pool numbers of the leaves that the thread has.
template <class Function>
void ThreadRegistry::for_each_number(ThreadCaches& table, Function function) noexcept {
    for (unsigned leaf = 0; leaf < detail::cached_pool_count; leaf += detail::ThreadLeaf::size) {
        if (!table.has_leaf_of(leaf)) continue;
        for (unsigned index = 0; index < detail::ThreadLeaf::size; ++index) function(leaf + index);
    }
}

ThreadRegistry& thread_registry() noexcept;

}  // namespace tensorpool::blocks
