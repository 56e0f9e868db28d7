#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "blocks/bucket_set.hpp"
#include "blocks/thread_caches.hpp"
#include "platform/platform.hpp"

namespace tensorpool::blocks {

/// Which pools there are, and which threads have caches for them. Joins the two lives: a thread
/// that ends hands its blocks back, a pool that dies leaves no cache behind. Thread-safe; the only
/// one is the process's, never destroyed.
class ThreadRegistry {
public:
    constexpr ThreadRegistry() noexcept = default;

    /// A number for a new pool, the lowest that is free; `no_number` when there is none.
    unsigned take_number() noexcept;
    void give_back_number(unsigned number) noexcept;
    static constexpr unsigned no_number = ~0U;
    /// The global pool's, set aside: its inline fast path knows it before the pool is set up. Those
    /// up to the first that is given out are for its finer series.
    static constexpr unsigned global_number = 0;
    static constexpr unsigned first_number = global_number + base::series_count;
    /// Pool numbers are smaller: the page map and the address space have 16 bits for them, of which
    /// the latter takes three values for other things.
    static constexpr unsigned max_pools = pages::AddressSpace::max_pools;

    /// Lets threads attach. From now on a fork takes the pool's locks.
    void enter(BucketSet& set) noexcept;
    /// Clears the pool's entry in every thread's table. No call on the pool is under way.
    void leave(BucketSet& set) noexcept;

    /// The calling thread's cache for this pool, made if need be; nullptr when the pool has none,
    /// when the thread is in its last destructors, or when memory is short: calls then go direct.
    Cache* attach(BucketSet& set) noexcept;
    /// The same, but never makes one.
    Cache* attached(const BucketSet& set) noexcept;

    /// Gives what the calling thread has parked, of all series of the pool, to the depots and to
    /// the page heap.
    void give_back_own(BucketSet& set, pages::Changes& changes) noexcept;

    /// From now on every call of every thread takes the slow path, where its cache is still used:
    /// for who wants to see each call. A call that is under way may be the last one unseen.
    void hide_caches() noexcept;
    /// Each thread finds its caches again on its next slow path.
    void show_caches() noexcept;

    /// Brings home blocks of the set's pool that lie in other threads' magazines: of those that
    /// have called nothing since the last look; of any, until half of what the pool's threads may
    /// hold is free; or of all. A thread that is in the midst of a slow path keeps what it has:
    /// then it returns false. All do where the system has no fences of other threads. The caller
    /// holds no lock.
    bool take_back(BucketSet& set, TakeFrom from, pages::Changes& changes) noexcept;
    /// Whether it can bring anything home at all: what one thread keeps is of no use to others
    /// otherwise.
    bool can_take_back() noexcept;
    /// Until no such call is under way.
    void wait_for_take_back() noexcept { const std::lock_guard guard(mutex_); }

    /// Copies the name of the pool with this number, cut to what fits. False when there is none.
    bool name_of(unsigned number, char* name, std::size_t bytes) noexcept;

    /// Held while the global pool is set up, and the first lock that a fork takes. Its holder has
    /// called `watch_forks` before.
    std::mutex& set_up_mutex() noexcept { return set_up_mutex_; }
    void watch_forks() noexcept;
    /// While the library is loaded.
    void prepare_fences_early() noexcept;

    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;
    void end_thread() noexcept;

private:
    bool set_up_handlers() noexcept;
    ThreadCaches* own_table() noexcept;
    bool make_leaf(ThreadCaches& table, unsigned number) noexcept;
    void show(ThreadCaches& table, const BucketSet& set) noexcept;
    // Of their own, so that `attach` saves no registers for them.
    [[gnu::noinline]] Cache* attach_slow(BucketSet& set) noexcept;
    [[gnu::noinline]] void show_again(ThreadCaches& table, const BucketSet& set) noexcept;
    Cache* make_cache(BucketSet& set) noexcept;
    void detach(Cache& cache) noexcept;
    void abandon_others() noexcept;
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
    // Below: under mutex_.
    pages::RecordArena records_;
    ThreadCaches* tables_ = nullptr;  // of living threads
    ThreadCaches* free_tables_ = nullptr;
    OwnLeaf* free_leaves_ = nullptr;
    BucketSet* sets_ = nullptr;
    // Written before the first thread asks for it, so one that ends may read it without the mutex.
    platform::ExitHandler exit_handler_ = platform::no_exit_handler;
    // Written under the mutex; read without it too, and then relaxed: either value is right.
    enum class Fences : std::uint8_t { unknown, none, ready };
    std::atomic<Fences> fences_ = Fences::unknown;
    // Read without the mutex too: who sees an old value finds it out under the mutex.
    std::atomic<bool> hidden_ = false;
    std::array<std::uint64_t, max_pools / 64 + 1> numbers_ = {};
    unsigned lowest_free_ = first_number;
};

ThreadRegistry& thread_registry() noexcept;

}  // namespace tensorpool::blocks
