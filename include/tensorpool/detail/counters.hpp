#pragma once

/// @file
/// The words in which a thread counts what it does with one pool. Layer `statistics`.
///
/// A thread writes its own counters with plain loads and stores; anybody may read them at any
/// time. They lie in cache lines of their own and hold no pointer, so that a shared segment can
/// hold them as they are. All but one are running totals that only grow.

#include <atomic>
#include <cstdint>

#include <tensorpool/detail/buckets.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

using Counter = std::atomic<std::uint64_t>;

/// For a counter that only the calling thread writes. Relaxed: a reader wants the value only.
inline void add(Counter& counter, std::uint64_t amount) noexcept {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    // The one instruction that clang makes of the lines below; gcc makes three, and a pair of calls
    // takes a quarter longer (perf/pair.cpp). Not locked: other threads only read.
    static_assert(sizeof(Counter) == sizeof(std::uint64_t));
    asm("addq %1, %0" : "+m"(counter) : "er"(amount) : "cc");
#else
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
#endif
}

/// As `add`, for what must not be seen before the additions that came before it: frees. Pairs with
/// the acquire load of a reader, which sums frees before allocations and so never sees more blocks
/// freed than allocated. On x86-64 stores are seen in order; only the compiler has to be told.
inline void add_release(Counter& counter, std::uint64_t amount) noexcept {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    std::atomic_signal_fence(std::memory_order_release);
    add(counter, amount);
#else
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_release);
#endif
}

/// One bucket, one thread. `taken - returned - (allocations - deallocations)` blocks are parked in
/// the thread's magazines.
struct alignas(64) BucketCounters {
    Counter allocations;      // blocks handed out
    Counter requested_bytes;  // what was asked for, counted at allocation
    Counter deallocations;    // blocks that came back
    Counter misses;           // allocations that found both magazines empty
    Counter taken;            // blocks that came into magazines from the depot or from spans
    Counter returned;         // blocks that left magazines for the depot or for spans
    Counter depot_hits;       // misses that a magazine from the depot served
    Counter system_misses;    // misses for which the pool had to grow
};
static_assert(sizeof(BucketCounters) == 64);

/// Blocks of whole pages, one thread.
struct alignas(64) LargeCounters {
    Counter allocations;
    Counter requested_bytes;
    Counter allocated_bytes;
    Counter deallocations;
    Counter deallocated_bytes;
    Counter cache_hits;     // allocations that the thread's magazine or the cache served
    Counter system_misses;  // allocations for which the pool had to grow
    Counter parked_bytes;   // in the thread's magazine now: no total
};
static_assert(sizeof(LargeCounters) == 64);

struct ThreadCounters {
    BucketCounters buckets[bucket_count];
    LargeCounters large;
};
static_assert(sizeof(ThreadCounters) == 64 * (bucket_count + 1));

}  // namespace abi_2
}  // namespace tensorpool::detail
