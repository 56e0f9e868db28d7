#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/export.hpp>

#include "statistics/scopes/thread_sums.hpp"
#include "statistics/segment/segment_layout.hpp"

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

class CountersOfThread;

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
    CountersOfThread(const CountersOfThread&) = delete;
    CountersOfThread& operator=(const CountersOfThread&) = delete;

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

/// Counts an allocation or deallocation of a block of `bytes` in `bucket` for the calling thread's
/// scopes. Must be called with each count in counters that threads share (PoolCounters::shared),
/// which are in no thread's list.
inline void count_shared_allocation(unsigned bucket, std::size_t bytes,
                                    std::size_t requested_bytes) noexcept {
    if (!has_open_scope()) [[likely]]
        return;
    ThreadSums counted;
    counted.allocations[bucket] = 1;
    counted.small_allocated_bytes = bytes;
    counted.requested_bytes = requested_bytes;
    count_beside_slow(counted);
}
inline void count_shared_deallocation(unsigned bucket, std::size_t bytes) noexcept {
    if (!has_open_scope()) [[likely]]
        return;
    ThreadSums counted;
    counted.deallocations[bucket] = 1;
    counted.small_deallocated_bytes = bytes;
    count_beside_slow(counted);
}
/// Counts the allocation or deallocation of a block of whole pages of `bytes` for the calling
/// thread's scopes.
inline void count_shared_large_allocation(std::size_t requested_bytes, std::size_t bytes) noexcept {
    if (!has_open_scope()) [[likely]]
        return;
    ThreadSums counted;
    counted.large_allocations = 1;
    counted.requested_bytes = requested_bytes;
    counted.large_allocated_bytes = bytes;
    count_beside_slow(counted);
}
inline void count_shared_large_deallocation(std::size_t bytes) noexcept {
    if (!has_open_scope()) [[likely]]
        return;
    ThreadSums counted;
    counted.large_deallocations = 1;
    counted.large_deallocated_bytes = bytes;
    count_beside_slow(counted);
}

/// Counts the growth of a block of whole pages by `bytes` for the calling thread's scopes.
inline void count_shared_large_growth(std::size_t requested_bytes, std::size_t bytes) noexcept {
    if (!has_open_scope()) [[likely]]
        return;
    ThreadSums counted;
    counted.requested_bytes = requested_bytes;
    counted.large_allocated_bytes = bytes;
    count_beside_slow(counted);
}

/// Counts that a block of whole pages became shorter by `bytes` for the calling thread's scopes.
inline void count_shared_large_loss(std::size_t bytes) noexcept {
    if (!has_open_scope()) [[likely]]
        return;
    ThreadSums counted;
    counted.large_deallocated_bytes = bytes;
    count_beside_slow(counted);
}

/// Called around a fork, before the segment's `before_fork` and after its other handlers: the
/// scopes of the child count in the child's segment.
void lock_counters_of_threads() noexcept;
void unlock_counters_of_threads() noexcept;
/// Called in the child after `unlock_counters_of_threads`. The child keeps the scopes of the thread
/// that forked. Scopes of other threads, which do not exist in the child, are no longer counted as
/// open.
void counters_of_threads_in_child() noexcept;

}  // namespace tensorpool::statistics
