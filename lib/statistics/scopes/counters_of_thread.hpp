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
/// A thread has a list of the slots in which it counts. Slots are cumulative over threads, so what
/// stood in one is taken off the thread's `settled` sums when it takes the slot, and what stands in
/// it is added to them when it gives the slot back or the pool dies. `settled` plus what stands in
/// the slots then never jumps, and differences of it are what the thread did.
namespace tensorpool::statistics {

class CountersOfThread;

/// The part of a slot's handle that belongs to the thread that counts in it.
struct CountersLink {
    CountersLink* previous = nullptr;
    CountersLink* next = nullptr;
    const detail::ThreadCounters* counters = nullptr;
    unsigned series = 0;  // of the sizes that they count (base/block_sizes.hpp)
    // nullptr: in no thread's list. Changes under the owner's mutex; stored with release when the
    // rest is done, for who reads nullptr may free the handle.
    std::atomic<CountersOfThread*> owner = nullptr;
};

/// The calling thread counts in the slot from now on. Where there is no memory for the thread's
/// record, its scopes will not see what it counts there.
void begin(CountersLink& slot, const detail::ThreadCounters& counters, unsigned series) noexcept;
/// It counts there no more: on that thread, or on any other while no call on the pool is under way,
/// such as when the pool dies. Nothing is done for a slot that did not begin or has ended, nor for
/// one whose thread has gone. Under whatever lock.
void end(CountersLink& slot) noexcept;

/// One thread's list, its open scopes, and their sums. Its memory never becomes anything else.
class alignas(64) CountersOfThread {
public:
    CountersOfThread() noexcept = default;
    CountersOfThread(const CountersOfThread&) = delete;
    CountersOfThread& operator=(const CountersOfThread&) = delete;

    /// The calling thread's, made if need be; nullptr without memory, and in a thread's last
    /// destructors. It goes when the thread ends.
    static CountersOfThread* own() noexcept;

    bool has_scope() const noexcept { return innermost.load(std::memory_order_relaxed) != nullptr; }

    // REQUIRES from here on: the mutex is held.
    void add(CountersLink& slot, const detail::ThreadCounters& counters, unsigned series) noexcept;
    void remove(CountersLink& slot) noexcept;
    /// What the thread counted ever, up to a constant.
    ThreadSums sums() const noexcept;
    std::uint64_t net_bytes() const noexcept;
    /// Raises the innermost scope's highest net growth.
    void look() noexcept;
    /// Its slots are no thread's, and its scopes have no thread.
    void leave() noexcept;

    // A leaf: under it no other lock is taken but that of the free frames.
    std::mutex mutex;
    // Below: under `mutex`.
    CountersLink* slots = nullptr;
    ThreadSums settled;
    // Read by its thread without the mutex; another thread may end a scope meanwhile.
    std::atomic<detail::ScopeFrame*> innermost = nullptr;
    detail::ScopeFrame* free_frames = nullptr;

    /// Where the names of its latest scopes stand, or those of the thread before. Its thread's
    /// alone.
    std::array<ScopeRecord*, 8> known_names = {};

    // Under the lock of all threads' records.
    CountersOfThread* next_of_all = nullptr;
    CountersOfThread* next_free = nullptr;
    bool taken = false;
};

/// nullptr before the thread's first slot or scope.
extern constinit thread_local CountersOfThread* own_counters_of_thread TENSORPOOL_INITIAL_EXEC;

inline bool has_open_scope() noexcept {
    return own_counters_of_thread != nullptr && own_counters_of_thread->has_scope();
}

void look_at_scopes_slow() noexcept;
void count_beside_slow(const ThreadSums& counted) noexcept;

/// To be called where a thread's magazine was exchanged and where a large block came or went, after
/// that was counted: the peaks of the thread's open scopes are raised. Two loads where there is
/// none. Under whatever lock.
inline void look_at_scopes() noexcept {
    if (has_open_scope()) [[unlikely]]
        look_at_scopes_slow();
}

/// To be called beside each count in a slot that threads share (PoolCounters::shared), which no
/// thread's list holds: the calling thread allocated a block of `bytes`, counted with those of
/// `bucket`, or freed one.
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
/// The same for a block of whole pages, of `bytes`.
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

/// The same for a block of whole pages that became longer by `bytes`.
inline void count_shared_large_growth(std::size_t requested_bytes, std::size_t bytes) noexcept {
    if (!has_open_scope()) [[likely]]
        return;
    ThreadSums counted;
    counted.requested_bytes = requested_bytes;
    counted.large_allocated_bytes = bytes;
    count_beside_slow(counted);
}

/// Around a fork, before the segment's `before_fork` and after its handlers: the child's scopes
/// count in the child's segment.
void lock_counters_of_threads() noexcept;
void unlock_counters_of_threads() noexcept;
/// In the child, after `unlock_counters_of_threads`: it keeps the scopes of the thread that forked;
/// those of other threads, which it does not have, are no longer counted as open.
void counters_of_threads_in_child() noexcept;

}  // namespace tensorpool::statistics
