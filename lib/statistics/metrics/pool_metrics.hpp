#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/statistics.hpp>

#include "base/atomics.hpp"
#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

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
    Counter bucket_out_bytes[detail::bucket_count];  // not in the spans of the bucket: in use,
                                                     // parked or in the depot
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

/// Metrics of a pool. Metrics without a counter here are computed, or are sums over its buckets and
/// large blocks.
template <>
struct Metrics<PoolStatistics> {
    using enum MetricKind;
    using Of = PoolStatistics;
    static constexpr const char* of = "pool";
    static constexpr Metric<Of, PoolTotals> all[] = {
        {"id", &Of::id, "number", gauge, "Number that no other pool or arena of the process has."},
        {"in_use_bytes", &Of::in_use_bytes, "bytes", gauge, "Bytes of blocks that callers hold.",
         "tensorpool_block_bytes"},
        {"capacity_bytes", &Of::capacity_bytes, "bytes", gauge,
         "Committed bytes, including free memory but not records.", "tensorpool_capacity_bytes",
         &PoolTotals::capacity_bytes},
        {"reserved_bytes", &Of::reserved_bytes, "bytes", gauge,
         "Address space of the pool, which takes no memory.", "tensorpool_reserved_bytes",
         &PoolTotals::reserved_bytes},
        {"limit_bytes", &Of::limit_bytes, "bytes", gauge,
         "Maximum of the capacity; 0 if there is no limit."},
        {"peak_in_use_bytes", &Of::peak_in_use_bytes, "bytes", peak,
         "Highest number of bytes in use at once, including free blocks that threads and depots "
         "keep.",
         "tensorpool_peak_block_bytes", &PoolTotals::peak_held_bytes},
        {"peak_capacity_bytes", &Of::peak_capacity_bytes, "bytes", peak, "Highest capacity.",
         "tensorpool_peak_capacity_bytes", &PoolTotals::peak_capacity_bytes},
        {"peak_reserved_bytes", &Of::peak_reserved_bytes, "bytes", peak,
         "Most address space that the pool had at once.", "", &PoolTotals::peak_reserved_bytes},
        {"requested_bytes", &Of::requested_bytes, "bytes", total,
         "Bytes requested by all allocations, counted at allocation.",
         "tensorpool_requested_bytes_total"},
        {"allocated_bytes", &Of::allocated_bytes, "bytes", total,
         "Bytes allocated; the excess over the requested bytes is due to rounding.",
         "tensorpool_allocated_bytes_total"},
        {"allocations", &Of::allocations, "calls", total, "Blocks allocated."},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks freed.",
         "tensorpool_deallocations_total"},
        {"cache_hits", &Of::cache_hits, "calls", total,
         "Allocations served by a thread's magazines or the large-block cache."},
        {"cache_misses", &Of::cache_misses, "calls", total, "All other allocations."},
        {"failures", &Of::failures, "calls", total, "Requests that could not be met."},
        {"system_misses", &Of::system_misses, "calls", total,
         "Allocations for which the pool had to grow."},
        {"parked_bytes", &Of::parked_bytes, "bytes", gauge,
         "Free bytes in the magazines of threads."},
        {"depot_bytes", &Of::depot_bytes, "bytes", gauge,
         "Free bytes in magazines that no thread holds."},
        {"span_bytes", &Of::span_bytes, "bytes", gauge, "Free bytes in the spans of buckets."},
        {"cached_bytes", &Of::cached_bytes, "bytes", gauge, "Free bytes in the large-block cache.",
         "", &PoolTotals::large_cached_bytes},
        {"free_bytes", &Of::free_bytes, "bytes", gauge,
         "Free committed bytes in runs of whole pages.", "", &PoolTotals::free_bytes},
        {"untouched_bytes", &Of::untouched_bytes, "bytes", gauge,
         "Free bytes in runs of whole pages that were never touched.", "",
         &PoolTotals::untouched_bytes},
        {"untouched_span_bytes", &Of::untouched_span_bytes, "bytes", gauge,
         "Free bytes in the spans of buckets that take no memory.", "",
         &PoolTotals::untouched_span_bytes},
        {"trimmable_span_bytes", &Of::trimmable_span_bytes, "bytes", gauge,
         "Free bytes in the spans of buckets that `trim` returns to the system.", "",
         &PoolTotals::trimmable_span_bytes},
        {"lost_bytes", &Of::lost_bytes, "bytes", gauge,
         "Bytes parked by threads that did not survive a fork.", "", &PoolTotals::lost_bytes},
        {"retain_bytes", &Of::retain_bytes, "bytes", gauge,
         "Free bytes that may stay committed (RetentionPolicy::bytes).", "",
         &PoolTotals::retain_bytes},
        {"retain_ms", &Of::retain_ms, "milliseconds", gauge,
         "Length of a retention period (RetentionPolicy::milliseconds).", "",
         &PoolTotals::retain_ms},
        {"prepared_bytes", &Of::prepared_bytes, "bytes", gauge,
         "Capacity that `reserve` prepared, which stays until `trim`.", "",
         &PoolTotals::prepared_bytes},
        {"record_bytes", &Of::record_bytes, "bytes", gauge,
         "Bytes of the pool's own records, which are not part of its capacity.",
         "tensorpool_record_bytes", &PoolTotals::record_bytes},
        {"growths", &Of::growths, "times", total, "Number of times that memory was committed.",
         "tensorpool_system_maps_total", &PoolTotals::growths},
        {"grown_bytes", &Of::grown_bytes, "bytes", total, "Bytes committed by all growths.", "",
         &PoolTotals::grown_bytes},
        {"give_backs", &Of::give_backs, "times", total,
         "Number of times that memory was returned to the system.", "", &PoolTotals::give_backs},
        {"given_back_bytes", &Of::given_back_bytes, "bytes", total, "Bytes returned to the system.",
         "tensorpool_released_bytes_total", &PoolTotals::given_back_bytes},
        {"threads", &Of::threads, "threads", gauge, "Threads that have a cache for this pool.",
         "tensorpool_threads", &PoolTotals::threads},
        {"guarded_blocks", &Of::guarded_blocks, "blocks", gauge,
         "Guarded blocks that callers hold.", "", &PoolTotals::guarded_blocks},
        {"guarded_allocations", &Of::guarded_allocations, "blocks", total,
         "Blocks that were guarded.", "", &PoolTotals::guarded_allocations},
        {"quarantined_bytes", &Of::quarantined_bytes, "bytes", gauge,
         "Bytes of freed blocks that wait before they are reused.", "",
         &PoolTotals::quarantined_bytes},
        {"failures_by_limit", &Of::failures_by_limit, "calls", total,
         "Requests that could not be met, by the limit that caused it: unknown, max_allocation, "
         "max_capacity, memory, address space, records.",
         "", &PoolTotals::failures},
    };
};

/// Metrics of the blocks of one size.
template <>
struct Metrics<BucketStatistics> {
    using enum MetricKind;
    using Of = BucketStatistics;
    using Counted = detail::BucketCounters;
    static constexpr const char* of = "bucket";
    static constexpr Metric<Of, Counted> all[] = {
        {"block_bytes", &Of::block_bytes, "bytes", gauge, "Size of a block in bytes."},
        {"in_use_bytes", &Of::in_use_bytes, "bytes", gauge, "Bytes of blocks that callers hold."},
        {"parked_bytes", &Of::parked_bytes, "bytes", gauge,
         "Free bytes in the magazines of threads."},
        {"capacity_bytes", &Of::capacity_bytes, "bytes", gauge,
         "Bytes of the spans that the bucket holds."},
        {"allocations", &Of::allocations, "calls", total, "Blocks allocated.", "",
         &Counted::allocations},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks freed.", "",
         read_first(&Counted::deallocations)},
        {"requested_bytes", &Of::requested_bytes, "bytes", total, "Bytes requested.", "",
         &Counted::requested_bytes},
        {"allocated_bytes", &Of::allocated_bytes, "bytes", total,
         "Bytes allocated for these requests."},
        {"cache_hits", &Of::cache_hits, "calls", total,
         "Allocations served by the thread's magazines."},
        {"cache_misses", &Of::cache_misses, "calls", total,
         "Allocations served by the depot or by spans.", "", &Counted::misses},
        {"depot_hits", &Of::depot_hits, "calls", total,
         "Misses served by a magazine from the depot.", "", &Counted::depot_hits},
        {"system_misses", &Of::system_misses, "calls", total,
         "Misses for which the pool had to grow.", "", &Counted::system_misses},
        {"depot_bytes", &Of::depot_bytes, "bytes", gauge,
         "Free bytes in magazines that no thread holds."},
    };
};

/// Metrics of blocks of whole pages.
template <>
struct Metrics<LargeStatistics> {
    using enum MetricKind;
    using Of = LargeStatistics;
    using Counted = detail::LargeCounters;
    static constexpr const char* of = "large";
    static constexpr Metric<Of, Counted> all[] = {
        {"in_use_bytes", &Of::in_use_bytes, "bytes", gauge, "Bytes of blocks that callers hold."},
        {"cached_bytes", &Of::cached_bytes, "bytes", gauge, "Free bytes in the large-block cache."},
        {"parked_bytes", &Of::parked_bytes, "bytes", gauge,
         "Free bytes in the magazines of threads.", "", &Counted::parked_bytes},
        {"allocations", &Of::allocations, "calls", total, "Blocks allocated.", "",
         &Counted::allocations},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks freed.", "",
         read_first(&Counted::deallocations)},
        {"requested_bytes", &Of::requested_bytes, "bytes", total, "Bytes requested.", "",
         &Counted::requested_bytes},
        {"allocated_bytes", &Of::allocated_bytes, "bytes", total,
         "Bytes allocated for these requests.", "", &Counted::allocated_bytes},
        {"cache_hits", &Of::cache_hits, "calls", total,
         "Allocations served by a thread's magazine or the large-block cache.", "",
         &Counted::cache_hits},
        {"cache_misses", &Of::cache_misses, "calls", total, "All other allocations."},
        {"system_misses", &Of::system_misses, "calls", total,
         "Misses for which the pool had to grow.", "", &Counted::system_misses},
    };
};

}  // namespace tensorpool::statistics
