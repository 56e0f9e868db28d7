#pragma once

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/timeline.hpp>

#include "base/atomics.hpp"

namespace tensorpool::statistics {

using detail::Counter;

/// Counters that exist once for each pool, next to the counters of each thread. Contains no
/// pointers because it lies in the shared segment. Any thread or process may read them at any time;
/// the comments below say how they are written.
struct alignas(64) PoolTotals {
    // Written under the page heap's lock.
    Counter capacity_bytes;
    Counter reserved_bytes;
    Counter free_bytes;
    Counter peak_capacity_bytes;
    Counter peak_reserved_bytes;
    Counter growths;
    Counter grown_bytes;
    Counter give_backs;
    Counter given_back_bytes;
    // Written by atomic addition, on slow paths only.
    Counter failures[limit_kind_count];  // by LimitKind
    Counter lost_bytes;
    Counter large_cached_bytes;
    Counter record_bytes;
    // Written by atomic addition under each bucket's lock. Finer sizes count under the bucket that
    // would serve the same requests.
    Counter bucket_capacity_bytes[detail::bucket_count];
    Counter bucket_out_bytes[detail::bucket_count];  // in use, parked or in the depot
    Counter trimmable_span_bytes;
    // Written when the pool is created: the retention policy.
    Counter retain_bytes;
    Counter retain_ms;
    Counter prepared_bytes;  // written under the page heap's lock of growth
    Counter threads;         // that have counters now; written under the lock of their list

    // On a cache line of their own because all threads add to it on slow paths. Bytes of blocks
    // that left the spans of their buckets (in use, parked or in a depot) and of large blocks in
    // use or parked. Exact, never less than the bytes in use and never more than the capacity.
    alignas(64) Counter held_bytes;
    Counter peak_held_bytes;
    Counter lost_large_bytes;  // of large blocks, like lost_bytes of small blocks
    Counter guarded_blocks;
    Counter guarded_allocations;
    Counter quarantined_bytes;
    Counter untouched_bytes;       // written like `free_bytes`
    Counter untouched_span_bytes;  // written by atomic addition under each bucket's lock

    /// Counts blocks of `bytes` bytes that left the spans of a bucket of this row, or, with
    /// `let_go_from`, that returned to them.
    void hold_in(unsigned row, std::uint64_t bytes) noexcept {
        bucket_out_bytes[row].fetch_add(bytes, std::memory_order_relaxed);
        hold(bytes);
    }
    void let_go_from(unsigned row, std::uint64_t bytes) noexcept {
        bucket_out_bytes[row].fetch_sub(bytes, std::memory_order_relaxed);
        let_go(bytes);
    }
    /// Counts `bytes` more that are held.
    void hold(std::uint64_t bytes) noexcept {
        const auto now = held_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        // The sum is below 0 in the child of a fork if a block is freed that another thread
        // allocated while the segment was copied. Such a value is no peak.
        if (static_cast<std::int64_t>(now) > 0) base::raise_to(peak_held_bytes, now);
    }
    void let_go(std::uint64_t bytes) noexcept {
        held_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    }
};

}  // namespace tensorpool::statistics
