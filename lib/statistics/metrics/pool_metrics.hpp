#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/statistics.hpp>

#include "base/atomics.hpp"
#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

/// What is counted once for a pool, beside what each thread counts. No pointers: it lies in the
/// shared segment. Anybody reads it at any time; who writes a word stands beside it.
struct alignas(64) PoolTotals {
    // Under the page heap's lock.
    Counter capacity_bytes;
    Counter reserved_bytes;
    Counter free_bytes;
    Counter peak_capacity_bytes;
    Counter peak_reserved_bytes;
    Counter growths;
    Counter grown_bytes;
    Counter give_backs;
    Counter given_back_bytes;
    // By atomic addition, on slow paths only.
    Counter failures[limit_kind_count];  // by LimitKind
    Counter lost_bytes;
    Counter large_cached_bytes;
    Counter record_bytes;
    // By atomic addition, under each bucket's lock: finer sizes count where the bucket would.
    Counter bucket_capacity_bytes[detail::bucket_count];
    Counter bucket_out_bytes[detail::bucket_count];  // not at home: in use, parked, in the depot

    // In a line of their own: all threads add to it now and then. Bytes that left the central
    // lists, in use or parked, and what threads took ahead: never less than what is in use.
    alignas(64) Counter held_bytes;
    Counter peak_held_bytes;
    Counter lost_large_bytes;  // of large blocks, as lost_bytes of small ones

    /// `bytes` more left the central lists.
    void hold(std::uint64_t bytes) noexcept {
        const auto now = held_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        // Below 0 in the child of a fork that gives back what another thread took while the segment
        // was copied: that was no peak.
        if (static_cast<std::int64_t>(now) > 0) base::raise_to(peak_held_bytes, now);
    }
    void let_go(std::uint64_t bytes) noexcept {
        held_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    }
};

/// Of a pool. What has no counter here is a sum over its buckets and large blocks, or computed.
template <>
struct Metrics<PoolStatistics> {
    using enum MetricKind;
    using Of = PoolStatistics;
    static constexpr const char* of = "pool";
    static constexpr Metric<Of, PoolTotals> all[] = {
        {"id", &Of::id, "number", gauge, "Unlike that of any other pool or arena of the process."},
        {"in_use_bytes", &Of::in_use_bytes, "bytes", gauge, "Of blocks that callers hold.",
         "tensorpool_block_bytes"},
        {"capacity_bytes", &Of::capacity_bytes, "bytes", gauge,
         "Committed memory, free memory included and records not.", "tensorpool_capacity_bytes",
         &PoolTotals::capacity_bytes},
        {"reserved_bytes", &Of::reserved_bytes, "bytes", gauge,
         "Address space lent to the pool; it takes no memory.", "tensorpool_reserved_bytes",
         &PoolTotals::reserved_bytes},
        {"limit_bytes", &Of::limit_bytes, "bytes", gauge,
         "How far the capacity may grow; 0 without a limit."},
        {"peak_in_use_bytes", &Of::peak_in_use_bytes, "bytes", peak,
         "The most bytes in use at once, with what thread caches parked at that time.",
         "tensorpool_peak_block_bytes", &PoolTotals::peak_held_bytes},
        {"peak_capacity_bytes", &Of::peak_capacity_bytes, "bytes", peak, "The largest capacity.",
         "tensorpool_peak_capacity_bytes", &PoolTotals::peak_capacity_bytes},
        {"peak_reserved_bytes", &Of::peak_reserved_bytes, "bytes", peak,
         "The most address space lent to the pool.", "", &PoolTotals::peak_reserved_bytes},
        {"requested_bytes", &Of::requested_bytes, "bytes", total,
         "Asked for by all allocations, counted at allocation.",
         "tensorpool_requested_bytes_total"},
        {"allocated_bytes", &Of::allocated_bytes, "bytes", total,
         "Handed out by all allocations; what exceeds the requested bytes is rounding.",
         "tensorpool_allocated_bytes_total"},
        {"allocations", &Of::allocations, "calls", total, "Blocks handed out."},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks that came back.",
         "tensorpool_deallocations_total"},
        {"cache_hits", &Of::cache_hits, "calls", total,
         "Allocations served by a thread's magazines or the large-block cache."},
        {"cache_misses", &Of::cache_misses, "calls", total, "All other allocations."},
        {"failures", &Of::failures, "calls", total, "Requests that could not be met."},
        {"system_misses", &Of::system_misses, "calls", total,
         "Allocations for which the pool had to grow."},
        {"parked_bytes", &Of::parked_bytes, "bytes", gauge, "Free, in the magazines of threads."},
        {"depot_bytes", &Of::depot_bytes, "bytes", gauge,
         "Free, in magazines that no thread holds."},
        {"span_bytes", &Of::span_bytes, "bytes", gauge, "Free, in the spans of buckets."},
        {"cached_bytes", &Of::cached_bytes, "bytes", gauge, "Free, in the large-block cache.", "",
         &PoolTotals::large_cached_bytes},
        {"free_bytes", &Of::free_bytes, "bytes", gauge,
         "Free and committed, in runs of whole pages.", "", &PoolTotals::free_bytes},
        {"lost_bytes", &Of::lost_bytes, "bytes", gauge,
         "Parked by threads that a fork left behind.", "", &PoolTotals::lost_bytes},
        {"record_bytes", &Of::record_bytes, "bytes", gauge,
         "The pool's own records, which are not part of its capacity.", "tensorpool_record_bytes",
         &PoolTotals::record_bytes},
        {"growths", &Of::growths, "times", total, "Times that memory was committed.",
         "tensorpool_system_maps_total", &PoolTotals::growths},
        {"grown_bytes", &Of::grown_bytes, "bytes", total, "Memory committed by all growths.", "",
         &PoolTotals::grown_bytes},
        {"give_backs", &Of::give_backs, "times", total,
         "Times that memory was given back to the system.", "", &PoolTotals::give_backs},
        {"given_back_bytes", &Of::given_back_bytes, "bytes", total,
         "Memory given back to the system.", "tensorpool_released_bytes_total",
         &PoolTotals::given_back_bytes},
        {"threads", &Of::threads, "threads", gauge, "Threads that have a cache for this pool.",
         "tensorpool_threads"},
        {"failures_by_limit", &Of::failures_by_limit, "calls", total,
         "Requests that could not be met, by the limit that was met: none known, max_allocation, "
         "max_capacity, memory, address space, records.",
         "", &PoolTotals::failures},
    };
};

/// Of the blocks of one size.
template <>
struct Metrics<BucketStatistics> {
    using enum MetricKind;
    using Of = BucketStatistics;
    using Counted = detail::BucketCounters;
    static constexpr const char* of = "bucket";
    static constexpr Metric<Of, Counted> all[] = {
        {"block_bytes", &Of::block_bytes, "bytes", gauge, "Size of a block."},
        {"in_use_bytes", &Of::in_use_bytes, "bytes", gauge, "Of blocks that callers hold."},
        {"parked_bytes", &Of::parked_bytes, "bytes", gauge, "Free, in the magazines of threads."},
        {"capacity_bytes", &Of::capacity_bytes, "bytes", gauge,
         "Of the spans that the bucket holds."},
        {"allocations", &Of::allocations, "calls", total, "Blocks handed out.", "",
         &Counted::allocations},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks that came back.", "",
         read_first(&Counted::deallocations)},
        {"requested_bytes", &Of::requested_bytes, "bytes", total, "Asked for.", "",
         &Counted::requested_bytes},
        {"allocated_bytes", &Of::allocated_bytes, "bytes", total, "Handed out for it."},
        {"cache_hits", &Of::cache_hits, "calls", total,
         "Allocations that the thread's magazines served."},
        {"cache_misses", &Of::cache_misses, "calls", total,
         "Allocations that went to the depot or to spans.", "", &Counted::misses},
        {"depot_hits", &Of::depot_hits, "calls", total,
         "Misses that a magazine from the depot served.", "", &Counted::depot_hits},
        {"system_misses", &Of::system_misses, "calls", total,
         "Misses for which the pool had to grow.", "", &Counted::system_misses},
        {"depot_bytes", &Of::depot_bytes, "bytes", gauge,
         "Free, in magazines that no thread holds."},
    };
};

/// Of blocks of whole pages.
template <>
struct Metrics<LargeStatistics> {
    using enum MetricKind;
    using Of = LargeStatistics;
    using Counted = detail::LargeCounters;
    static constexpr const char* of = "large";
    static constexpr Metric<Of, Counted> all[] = {
        {"in_use_bytes", &Of::in_use_bytes, "bytes", gauge, "Of blocks that callers hold."},
        {"cached_bytes", &Of::cached_bytes, "bytes", gauge, "Free, in the large-block cache."},
        {"parked_bytes", &Of::parked_bytes, "bytes", gauge, "Free, in the magazines of threads.",
         "", &Counted::parked_bytes},
        {"allocations", &Of::allocations, "calls", total, "Blocks handed out.", "",
         &Counted::allocations},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks that came back.", "",
         read_first(&Counted::deallocations)},
        {"requested_bytes", &Of::requested_bytes, "bytes", total, "Asked for.", "",
         &Counted::requested_bytes},
        {"allocated_bytes", &Of::allocated_bytes, "bytes", total, "Handed out for it.", "",
         &Counted::allocated_bytes},
        {"cache_hits", &Of::cache_hits, "calls", total,
         "Allocations that a thread's magazine or the large-block cache served.", "",
         &Counted::cache_hits},
        {"cache_misses", &Of::cache_misses, "calls", total, "All other allocations."},
        {"system_misses", &Of::system_misses, "calls", total,
         "Misses for which the pool had to grow.", "", &Counted::system_misses},
    };
};

}  // namespace tensorpool::statistics
