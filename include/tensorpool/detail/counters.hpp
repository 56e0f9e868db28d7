#pragma once

/// @file
/// The words in which a thread counts its operations on one pool. Layer `statistics`.
///
/// A thread writes its own counters with plain loads and stores; any thread or process may read
/// them at any time. They lie in cache lines of their own and hold no pointers, so they can lie in
/// a shared segment. All but one are running totals that only grow.

#include <atomic>
#include <cstdint>

#include <tensorpool/detail/buckets.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// A word that counts.
using Counter = std::atomic<std::uint64_t>;

/// Adds to a counter that only the calling thread writes. Relaxed is enough: a reader needs only
/// the value.
inline void add(Counter& counter, std::uint64_t amount) noexcept {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    // Clang makes this one instruction of the line below; gcc makes three, which lengthens a pair
    // of calls by a quarter (perf/pair.cpp). Not locked, because other threads only read.
    static_assert(sizeof(Counter) == sizeof(std::uint64_t));
    asm("addq %1, %0" : "+m"(counter) : "er"(amount) : "cc");
#else
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
#endif
}

/// Adds to a counter that must not be seen before earlier additions: one of frees. Only the calling
/// thread writes it.
///
/// The release store pairs with a reader's acquire load. The reader sums frees before allocations,
/// and so never sees more blocks freed than allocated. On x86-64, stores become visible in order,
/// so only the compiler must be prevented from reordering them.
inline void add_release(Counter& counter, std::uint64_t amount) noexcept {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    std::atomic_signal_fence(std::memory_order_release);
    add(counter, amount);
#else
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_release);
#endif
}

/// The counters of one thread for one bucket. The thread's magazines hold `taken - returned -
/// (allocations - deallocations)` blocks.
struct alignas(64) BucketCounters {
    Counter allocations;      // blocks allocated
    Counter requested_bytes;  // the requested sizes, counted at allocation
    Counter deallocations;    // blocks freed
    Counter misses;           // allocations that found both magazines empty
    Counter taken;            // blocks that came into magazines from the depot or from spans
    Counter returned;         // blocks that left magazines for the depot or for spans
    Counter depot_hits;       // misses that a magazine from the depot served
    Counter system_misses;    // misses for which the pool had to grow
};
static_assert(sizeof(BucketCounters) == 64);

/// The counters of one thread for large blocks, which are runs of whole pages.
struct alignas(64) LargeCounters {
    Counter allocations;
    Counter requested_bytes;
    Counter allocated_bytes;
    Counter deallocations;
    Counter deallocated_bytes;
    Counter cache_hits;  // allocations that the thread's magazine or the large-block cache served
    Counter system_misses;  // allocations for which the pool had to grow
    Counter parked_bytes;   // in the thread's magazine now: not a total
};
static_assert(sizeof(LargeCounters) == 64);

/// The counters of one thread for one pool.
struct ThreadCounters {
    BucketCounters buckets[bucket_count];
    LargeCounters large;
};
static_assert(sizeof(ThreadCounters) == 64 * (bucket_count + 1));

}  // namespace abi_2
}  // namespace tensorpool::detail
