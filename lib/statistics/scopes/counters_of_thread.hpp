#pragma once

#include <algorithm>
#include <functional>

#include "statistics/scopes/scope_table.hpp"
#include "statistics/segment/slab_list.hpp"

namespace tensorpool::detail {
struct ScopeFrame;
}

/// What a thread counts in all pools together, for its StatisticsScopes.
///
/// A thread has a list of the counters in which it counts. Counters are cumulative over all threads
/// that used them. Their values are therefore subtracted from the thread's `settled` sums when the
/// thread takes the counters. They are added to `settled` when the thread returns the counters or
/// the pool is destroyed. The sum of `settled` and the values of the listed counters never jumps,
/// and its differences are what the thread did.
namespace tensorpool::statistics {

using detail::ScopeFrame;

class CountersOfThread;

/// Sums of what one thread did with all pools, or did between two points in time. The values are
/// modulo 2^64, so only their differences are meaningful.
struct ThreadSums {
    // Blocks by bucket. Blocks of finer sizes count under the bucket that serves the same requests.
    std::array<std::uint64_t, detail::bucket_count> allocations = {};
    std::array<std::uint64_t, detail::bucket_count> deallocations = {};
    std::uint64_t small_allocated_bytes = 0;
    std::uint64_t small_deallocated_bytes = 0;
    std::uint64_t requested_bytes = 0;
    std::uint64_t large_allocations = 0;
    std::uint64_t large_allocated_bytes = 0;
    std::uint64_t large_deallocations = 0;
    std::uint64_t large_deallocated_bytes = 0;

    /// Adds counters of blocks of this series of sizes (base/block_sizes.hpp).
    void add(const detail::ThreadCounters& counted, unsigned series) noexcept;
    void add(const ThreadSums& more) noexcept { combine(more, std::plus<>()); }
    void subtract(const ThreadSums& less) noexcept { combine(less, std::minus<>()); }

    std::uint64_t allocation_count() const noexcept;
    std::uint64_t deallocation_count() const noexcept;
    std::uint64_t allocated_bytes() const noexcept {
        return small_allocated_bytes + large_allocated_bytes;
    }
    std::uint64_t deallocated_bytes() const noexcept {
        return small_deallocated_bytes + large_deallocated_bytes;
    }
    std::uint64_t net_bytes() const noexcept { return allocated_bytes() - deallocated_bytes(); }

private:
    template <class Operation>
    void combine(const ThreadSums& with, Operation operation) noexcept {
        using Words = std::array<std::uint64_t, sizeof(ThreadSums) / sizeof(std::uint64_t)>;
        Words words = std::bit_cast<Words>(*this);
        std::ranges::transform(words, std::bit_cast<Words>(with), words.begin(), operation);
        *this = std::bit_cast<ThreadSums>(words);
    }
};

/// Returns the bytes allocated minus the bytes freed. Reads only half of the counters.
std::uint64_t net_bytes(const detail::ThreadCounters& counted, unsigned series) noexcept;

/// Links the counters of one pool into the list of the thread that uses them.
struct CountersLink {
    CountersLink* previous = nullptr;
    CountersLink* next = nullptr;
    const detail::ThreadCounters* counters = nullptr;
    unsigned series = 0;  // of the block sizes that they count (base/block_sizes.hpp)
    // nullptr if no thread's list contains the link. Changed under the owner's mutex. Stored with
    // release after all other changes, because a thread that reads nullptr may free the link.
    std::atomic<CountersOfThread*> owner = nullptr;
};

/// Adds counters to the calling thread's list. If there is no memory for the thread's record, its
/// scopes do not include what it counts there.
void begin(CountersLink& link, const detail::ThreadCounters& counters, unsigned series) noexcept;
/// Removes counters from their thread's list. Called on that thread, or on any other thread while
/// no call on the pool is in progress, as when the pool is destroyed. Does nothing if the link is
/// in no list or its thread has ended. May be called under any lock.
void end(CountersLink& link) noexcept;

/// The list of counters of one thread, its open scopes, and their sums. Its memory is never reused
/// for anything else.
class alignas(64) CountersOfThread {
public:
    CountersOfThread() noexcept = default;

    /// Returns the record of the calling thread and creates it if necessary. Returns nullptr if
    /// there is no memory, and in a thread's last destructors. The record is released when the
    /// thread ends.
    static CountersOfThread* own() noexcept;

    bool has_scope() const noexcept { return innermost.load(std::memory_order_relaxed) != nullptr; }

    // REQUIRES, for the functions below: the mutex is held.
    void add(CountersLink& link, const detail::ThreadCounters& counters, unsigned series) noexcept;
    void remove(CountersLink& link) noexcept;
    /// Returns the sums of everything the thread has counted, up to a constant.
    ThreadSums sums() const noexcept;
    std::uint64_t net_bytes() const noexcept;
    /// Raises the highest net growth of the innermost scope.
    void look() noexcept;
    /// Removes the thread from all of its counters and scopes.
    void leave() noexcept;

    // A leaf lock: only the lock of the free frames is acquired under it.
    std::mutex mutex;
    // Guarded by `mutex`:
    CountersLink* links = nullptr;
    ThreadSums settled;
    // Its thread reads this without the mutex. Another thread may end a scope at the same time.
    std::atomic<detail::ScopeFrame*> innermost = nullptr;
    detail::ScopeFrame* free_frames = nullptr;

    /// Records of the latest scope names, of this thread or of the previous owner of this record.
    /// Used by its thread only.
    std::array<ScopeRecord*, 8> known_names = {};

    /// The number of the thread (detail::thread_number). Set once.
    std::size_t number = 0;

    // Guarded by the lock of all threads' records:
    CountersOfThread* next_of_all = nullptr;
    CountersOfThread* next_free = nullptr;
    bool taken = false;
};

/// Called when a thread ends: forgets what its open scopes set in layers above. `limits` implements
/// it.
void forget_open_scopes() noexcept;

/// nullptr before the thread's first counters or scope.
extern constinit thread_local CountersOfThread* own_counters_of_thread TENSORPOOL_INITIAL_EXEC;

inline bool has_open_scope() noexcept {
    return own_counters_of_thread != nullptr && own_counters_of_thread->has_scope();
}

void look_at_scopes_slow() noexcept;
void count_beside_slow(const ThreadSums& counted) noexcept;

/// Raises the peaks of the thread's open scopes. Must be called after a thread's magazine was
/// exchanged or a large block was allocated or freed, once that was counted. Costs two loads if no
/// scope is open. May be called under any lock.
inline void look_at_scopes() noexcept {
    if (has_open_scope()) [[unlikely]]
        look_at_scopes_slow();
}

/// Adds what `fill` sets to the sums of the calling thread's scopes, if it has any. Must be called
/// with each count in counters that threads share (PoolCounters::shared), which are in no thread's
/// list.
template <class Fill>
inline void count_shared(Fill fill) noexcept {
    if (!has_open_scope()) [[likely]]
        return;
    ThreadSums counted;
    fill(counted);
    count_beside_slow(counted);
}
inline void count_shared_allocation(unsigned bucket, std::size_t bytes,
                                    std::size_t requested_bytes) noexcept {
    count_shared([&](ThreadSums& counted) {
        counted.allocations[bucket] = 1;
        counted.small_allocated_bytes = bytes;
        counted.requested_bytes = requested_bytes;
    });
}
inline void count_shared_deallocation(unsigned bucket, std::size_t bytes) noexcept {
    count_shared([&](ThreadSums& counted) {
        counted.deallocations[bucket] = 1;
        counted.small_deallocated_bytes = bytes;
    });
}
/// Counts the growth of a block of whole pages by `bytes`; `blocks` is 1 if it is a new one.
inline void count_shared_large_growth(std::size_t requested_bytes, std::size_t bytes,
                                      unsigned blocks = 0) noexcept {
    count_shared([&](ThreadSums& counted) {
        counted.large_allocations = blocks;
        counted.requested_bytes = requested_bytes;
        counted.large_allocated_bytes = bytes;
    });
}
inline void count_shared_large_allocation(std::size_t requested_bytes, std::size_t bytes) noexcept {
    count_shared_large_growth(requested_bytes, bytes, 1);
}
/// Counts that a block of whole pages became shorter by `bytes`; `blocks` is 1 if it was freed.
inline void count_shared_large_loss(std::size_t bytes, unsigned blocks = 0) noexcept {
    count_shared([&](ThreadSums& counted) {
        counted.large_deallocations = blocks;
        counted.large_deallocated_bytes = bytes;
    });
}
inline void count_shared_large_deallocation(std::size_t bytes) noexcept {
    count_shared_large_loss(bytes, 1);
}

/// The free frames that no thread keeps.
SlabList<ScopeFrame>& free_scope_frames() noexcept;

/// Registers fork handlers that take the locks shared by all pools and arenas: those of this layer
/// and of the layers up to `limits`, which implements it. They are acquired after all other locks.
/// The child gets a segment of its own. Also called while the library is loaded. May be called on
/// any thread any number of times, including from static constructors. Returns false on failure:
/// the child of a fork may then find a lock taken that is never released, and the caller should
/// call again later.
[[nodiscard]] bool watch_forks() noexcept;
/// Called around a fork, before the segment's `before_fork` and after its other handlers: the
/// scopes of the child count in the child's segment.
void lock_counters_of_threads() noexcept;
void unlock_counters_of_threads() noexcept;
/// Called in the child after `unlock_counters_of_threads`. The child keeps the scopes of the thread
/// that forked. Scopes of other threads, which do not exist in the child, are no longer counted as
/// open.
void counters_of_threads_in_child() noexcept;

}  // namespace tensorpool::statistics

namespace tensorpool::detail {

class BudgetNode;

/// An open StatisticsScope. It is in a list of its thread, innermost first, until the scope is
/// paused or ends, or the thread ends. A frame is accessed under its owner's mutex. A frame without
/// an owner is accessed by its StatisticsScope only.
struct ScopeFrame {
    ScopeFrame* outer = nullptr;
    ScopeFrame* next_free = nullptr;
    // nullptr while it is paused, and after its thread ended. Changed under the owner's mutex.
    std::atomic<statistics::CountersOfThread*> owner = nullptr;
    statistics::ScopeRecord* record = nullptr;  // nullptr if there is no segment
    // The sums of its thread at its beginning, less what it counted before pauses. While it is
    // paused: what it counted.
    statistics::ThreadSums begin;
    std::uint64_t begin_net = 0;
    // The highest net growth since the scope began or went on, as far as it was measured. Only the
    // innermost frame is measured: when it ends, it passes its highest growth to the frame around
    // it.
    std::int64_t highest = 0;
    std::int64_t highest_before_pauses = 0;
    bool is_paused = false;
    // Used by the thread that began the scope.
    BudgetNode* budget = nullptr;        // that the scope charges, by its name; nullptr for none
    BudgetNode* outer_budget = nullptr;  // that was charged before
    bool left_by_fork = false;  // its thread is not in this process, so it is not counted as open

    std::uint64_t peak() const noexcept {
        return static_cast<std::uint64_t>(std::max(highest, highest_before_pauses));
    }
    void raise(std::uint64_t net) noexcept {
        highest = std::max(highest, static_cast<std::int64_t>(net - begin_net));
    }
    /// Takes over the highest growth of a frame inside this one.
    void take_over(const ScopeFrame& inner) noexcept {
        raise(inner.begin_net + static_cast<std::uint64_t>(inner.highest));
    }
};

}  // namespace tensorpool::detail
