#pragma once

#include <tensorpool/statistics.hpp>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/pool_totals.hpp"

/// The tables of pools, their buckets and their large blocks. The words are those of PoolTotals and
/// of the counters of threads; fields without a word are computed (pool_statistics.hpp).
namespace tensorpool::statistics {
namespace pools {

using enum MetricKind;

inline constexpr Field fields[] = {
    {"id", "number", gauge, "Number that no other pool or arena of the process has."},
    {"in_use_bytes", "bytes", gauge, "Bytes of blocks that callers hold.",
     "tensorpool_block_bytes"},
    {"capacity_bytes", "bytes", gauge, "Committed bytes, including free memory but not records.",
     "tensorpool_capacity_bytes", offsetof(PoolTotals, capacity_bytes)},
    {"reserved_bytes", "bytes", gauge, "Address space of the pool, which takes no memory.",
     "tensorpool_reserved_bytes", offsetof(PoolTotals, reserved_bytes)},
    {"limit_bytes", "bytes", gauge, "Maximum of the capacity; 0 if there is no limit."},
    {"peak_in_use_bytes", "bytes", peak,
     "Highest number of bytes in use at once, including free blocks that threads and depots keep.",
     "tensorpool_peak_block_bytes", offsetof(PoolTotals, peak_held_bytes)},
    {"peak_capacity_bytes", "bytes", peak, "Highest capacity.", "tensorpool_peak_capacity_bytes",
     offsetof(PoolTotals, peak_capacity_bytes)},
    {"peak_reserved_bytes", "bytes", peak, "Most address space that the pool had at once.", "",
     offsetof(PoolTotals, peak_reserved_bytes)},
    {"requested_bytes", "bytes", total,
     "Bytes requested by all allocations, counted at allocation.",
     "tensorpool_requested_bytes_total"},
    {"allocated_bytes", "bytes", total,
     "Bytes allocated; the excess over the requested bytes is due to rounding.",
     "tensorpool_allocated_bytes_total"},
    {"allocations", "calls", total, "Blocks allocated."},
    {"deallocations", "calls", total, "Blocks freed.", "tensorpool_deallocations_total"},
    {"cache_hits", "calls", total,
     "Allocations served by a thread's magazines or the large-block cache."},
    {"cache_misses", "calls", total, "All other allocations."},
    {"failures", "calls", total, "Requests that could not be met."},
    {"system_misses", "calls", total, "Allocations for which the pool had to grow."},
    {"parked_bytes", "bytes", gauge, "Free bytes in the magazines of threads."},
    {"depot_bytes", "bytes", gauge, "Free bytes in magazines that no thread holds."},
    {"span_bytes", "bytes", gauge, "Free bytes in the spans of buckets."},
    {"cached_bytes", "bytes", gauge, "Free bytes in the large-block cache.", "",
     offsetof(PoolTotals, large_cached_bytes)},
    {"free_bytes", "bytes", gauge, "Free committed bytes in runs of whole pages.", "",
     offsetof(PoolTotals, free_bytes)},
    {"untouched_bytes", "bytes", gauge,
     "Free bytes in runs of whole pages that were never touched.", "",
     offsetof(PoolTotals, untouched_bytes)},
    {"untouched_span_bytes", "bytes", gauge,
     "Free bytes in the spans of buckets that take no memory.", "",
     offsetof(PoolTotals, untouched_span_bytes)},
    {"trimmable_span_bytes", "bytes", gauge,
     "Free bytes in the spans of buckets that `trim` returns to the system.", "",
     offsetof(PoolTotals, trimmable_span_bytes)},
    {"lost_bytes", "bytes", gauge, "Bytes parked by threads that did not survive a fork.", "",
     offsetof(PoolTotals, lost_bytes)},
    {"retain_bytes", "bytes", gauge, "Free bytes that may stay committed (RetentionPolicy::bytes).",
     "", offsetof(PoolTotals, retain_bytes)},
    {"retain_ms", "milliseconds", gauge,
     "Length of a retention period (RetentionPolicy::milliseconds).", "",
     offsetof(PoolTotals, retain_ms)},
    {"prepared_bytes", "bytes", gauge,
     "Capacity that `reserve` prepared, which stays until `trim`.", "",
     offsetof(PoolTotals, prepared_bytes)},
    {"record_bytes", "bytes", gauge,
     "Bytes of the pool's own records, which are not part of its capacity.",
     "tensorpool_record_bytes", offsetof(PoolTotals, record_bytes)},
    {"growths", "times", total, "Number of times that memory was committed.",
     "tensorpool_system_maps_total", offsetof(PoolTotals, growths)},
    {"grown_bytes", "bytes", total, "Bytes committed by all growths.", "",
     offsetof(PoolTotals, grown_bytes)},
    {"give_backs", "times", total, "Number of times that memory was returned to the system.", "",
     offsetof(PoolTotals, give_backs)},
    {"given_back_bytes", "bytes", total, "Bytes returned to the system.",
     "tensorpool_released_bytes_total", offsetof(PoolTotals, given_back_bytes)},
    {"threads", "threads", gauge, "Threads that have a cache for this pool.", "tensorpool_threads",
     offsetof(PoolTotals, threads)},
    {"guarded_blocks", "blocks", gauge, "Guarded blocks that callers hold.", "",
     offsetof(PoolTotals, guarded_blocks)},
    {"guarded_allocations", "blocks", total, "Blocks that were guarded.", "",
     offsetof(PoolTotals, guarded_allocations)},
    {"quarantined_bytes", "bytes", gauge, "Bytes of freed blocks that wait before they are reused.",
     "", offsetof(PoolTotals, quarantined_bytes)},
    // Computed from buckets, large blocks and PoolStatistics::failures_by_limit.
    {.name = "failed_otherwise", .unit = "calls", .use = Use::derived},
    {.name = "failed_by_max_allocation", .unit = "calls", .use = Use::derived},
    {.name = "failed_by_max_capacity", .unit = "calls", .use = Use::derived},
    {.name = "failed_by_memory", .unit = "calls", .use = Use::derived},
    {.name = "failed_by_address_space", .unit = "calls", .use = Use::derived},
    {.name = "failed_by_records", .unit = "calls", .use = Use::derived},
    {.name = "from_magazines", .unit = "calls", .use = Use::derived},
    {.name = "from_depots", .unit = "calls", .use = Use::derived},
    {.name = "from_spans", .unit = "calls", .use = Use::derived},
    {.name = "from_extents", .unit = "calls", .use = Use::derived},
    {.name = "from_system", .unit = "calls", .use = Use::derived},
    {.name = "extent_bytes", .unit = "bytes", .use = Use::derived},
    {.name = "blocks", .unit = "blocks", .use = Use::derived},
    {.name = "kept_bytes", .unit = "bytes", .use = Use::derived},
};
inline constexpr IndexOf<fields> at;
/// The first of the derived fields, which metrics of Prometheus show.
inline constexpr std::uint8_t first_derived = at("failed_otherwise");
inline constexpr Rule derivations[] = {
    {Rule::plus, at("extent_bytes"), at("cached_bytes")},
    {Rule::plus, at("extent_bytes"), at("free_bytes")},
    {Rule::plus, at("blocks"), at("allocations")},
    {Rule::minus, at("blocks"), at("deallocations")},
    {Rule::plus, at("kept_bytes"), at("depot_bytes")},
    {Rule::plus, at("kept_bytes"), at("cached_bytes")},
};
inline constexpr Family families[] = {
    divided("tensorpool_cached_bytes", gauge,
            "Free memory that the pool keeps, by where it is: in the magazines of threads, in the "
            "depot, in spans of buckets, in free runs of pages.",
            "tier", "magazine|depot|span|extent",
            {at("parked_bytes"), at("depot_bytes"), at("span_bytes"), at("extent_bytes")}),
    divided("tensorpool_allocations_total", total,
            "Blocks allocated, by where they came from: the thread's magazines, the depot, spans "
            "of buckets, free runs of pages, new memory from the system.",
            "source", "magazine|depot|span|extent|system",
            {at("from_magazines"), at("from_depots"), at("from_spans"), at("from_extents"),
             at("from_system")}),
    divided("tensorpool_allocation_failures_total", total,
            "Requests that could not be met, by the limit that caused it.", "reason",
            "other|max_allocation|max_capacity|memory|address_space|records",
            {at("failed_otherwise"), at("failed_by_max_allocation"), at("failed_by_max_capacity"),
             at("failed_by_memory"), at("failed_by_address_space"), at("failed_by_records")}),
    single("tensorpool_limit_bytes", gauge, "Maximum of the capacity.", Family::limit,
           at("limit_bytes")),
    single("tensorpool_blocks", gauge, "Blocks that callers hold.", Family::number, at("blocks")),
};
inline constexpr Column columns[] = {
    {"NAME", Column::name},
    {"IN USE", Column::size, at("in_use_bytes")},
    {"CAPACITY", Column::size, at("capacity_bytes")},
    {"PEAK", Column::size, at("peak_in_use_bytes")},
    {"HIGHEST", Column::highest, at("in_use_bytes")},
    {"UTIL", Column::part, at("in_use_bytes"), at("capacity_bytes"), "",
     "What is in use of the capacity."},
    {"HITS", Column::part, at("cache_hits"), at("allocations"), "",
     "Allocations served by caches."},
    {"ALLOC/s", Column::rate, at("allocations")},
    {.title = "FAIL", .show = Column::count, .value = at("failures"), .width = 4},
    {"LIMIT", Column::limit, at("limit_bytes")},
    {"FREE/s", Column::rate, at("deallocations")},
    {"PARKED", Column::size, at("parked_bytes")},
    {"CACHED", Column::size, at("kept_bytes"), no_field, "", "In depots and for large blocks."},
    {"THREADS", Column::number, at("threads")},
};
inline constexpr Field failures_by_limit = {
    "failures_by_limit", "calls", total,
    "Requests that could not be met, by the limit that caused it: unknown, max_allocation, "
    "max_capacity, memory, address space, records."};
inline constexpr RecordTable table = {.name = "pools",
                                      .of = "pool",
                                      .label = "pool",
                                      .title = "pools",
                                      .version = PoolStatistics::current_version,
                                      .fields = fields,
                                      .derivations = derivations,
                                      .families = families,
                                      .columns = columns};

}  // namespace pools

namespace buckets {

using enum MetricKind;

inline constexpr Field fields[] = {
    {"block_bytes", "bytes", gauge, "Size of a block in bytes."},
    {"in_use_bytes", "bytes", gauge, "Bytes of blocks that callers hold."},
    {"parked_bytes", "bytes", gauge, "Free bytes in the magazines of threads."},
    {"capacity_bytes", "bytes", gauge, "Bytes of the spans that the bucket holds."},
    {"allocations", "calls", total, "Blocks allocated.", "",
     offsetof(detail::BucketCounters, allocations)},
    {"deallocations", "calls", total, "Blocks freed.", "",
     offsetof(detail::BucketCounters, deallocations), "", true},
    {"requested_bytes", "bytes", total, "Bytes requested.", "",
     offsetof(detail::BucketCounters, requested_bytes)},
    {"allocated_bytes", "bytes", total, "Bytes allocated for these requests."},
    {"cache_hits", "calls", total, "Allocations served by the thread's magazines."},
    {"cache_misses", "calls", total, "Allocations served by the depot or by spans.", "",
     offsetof(detail::BucketCounters, misses)},
    {"depot_hits", "calls", total, "Misses served by a magazine from the depot.", "",
     offsetof(detail::BucketCounters, depot_hits)},
    {"system_misses", "calls", total, "Misses for which the pool had to grow.", "",
     offsetof(detail::BucketCounters, system_misses)},
    {"depot_bytes", "bytes", gauge, "Free bytes in magazines that no thread holds."},
};
inline constexpr RecordTable table = {
    .name = "buckets", .of = "bucket", .name_word = no_word, .fields = fields};

}  // namespace buckets

namespace large_blocks {

using enum MetricKind;

inline constexpr Field fields[] = {
    {"in_use_bytes", "bytes", gauge, "Bytes of blocks that callers hold."},
    {"cached_bytes", "bytes", gauge, "Free bytes in the large-block cache."},
    {"parked_bytes", "bytes", gauge, "Free bytes in the magazines of threads.", "",
     offsetof(detail::LargeCounters, parked_bytes)},
    {"allocations", "calls", total, "Blocks allocated.", "",
     offsetof(detail::LargeCounters, allocations)},
    {"deallocations", "calls", total, "Blocks freed.", "",
     offsetof(detail::LargeCounters, deallocations), "", true},
    {"requested_bytes", "bytes", total, "Bytes requested.", "",
     offsetof(detail::LargeCounters, requested_bytes)},
    {"allocated_bytes", "bytes", total, "Bytes allocated for these requests.", "",
     offsetof(detail::LargeCounters, allocated_bytes)},
    {"cache_hits", "calls", total,
     "Allocations served by a thread's magazine or the large-block cache.", "",
     offsetof(detail::LargeCounters, cache_hits)},
    {"cache_misses", "calls", total, "All other allocations."},
    {"system_misses", "calls", total, "Misses for which the pool had to grow.", "",
     offsetof(detail::LargeCounters, system_misses)},
};
inline constexpr RecordTable table = {
    .name = "large", .of = "large", .name_word = no_word, .fields = fields};

}  // namespace large_blocks
}  // namespace tensorpool::statistics
