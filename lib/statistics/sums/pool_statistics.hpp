#pragma once

#include <numeric>

#include "base/block_sizes.hpp"
#include "statistics/records/record_values.hpp"
#include "statistics/sums/pool_tables.hpp"

namespace tensorpool::statistics {

// Each counter is independent of the others.
using base::read;

/// Adds the metrics that buckets and large blocks have in common.
template <class Part>
void add_part(PoolStatistics& statistics, const Part& part) noexcept {
    statistics.in_use_bytes += part.in_use_bytes;
    statistics.requested_bytes += part.requested_bytes;
    statistics.allocated_bytes += part.allocated_bytes;
    statistics.allocations += part.allocations;
    statistics.deallocations += part.deallocations;
    statistics.cache_hits += part.cache_hits;
    statistics.cache_misses += part.cache_misses;
    statistics.system_misses += part.system_misses;
    statistics.parked_bytes += part.parked_bytes;
}

inline void add_parts(PoolStatistics& statistics) noexcept {
    for (const BucketStatistics& bucket : statistics.buckets) add_part(statistics, bucket);
    add_part(statistics, statistics.large);
}

/// Computes the bytes of the buckets that are neither in use nor parked: in depots and in spans.
inline void add_depots_and_spans(PoolStatistics& statistics, const PoolTotals& totals) noexcept {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        BucketStatistics& one = statistics.buckets[bucket];
        const std::uint64_t out = read(totals.bucket_out_bytes[bucket]);
        one.capacity_bytes = read(totals.bucket_capacity_bytes[bucket]);
        one.depot_bytes = above(out, one.in_use_bytes + one.parked_bytes);
        statistics.depot_bytes += one.depot_bytes;
        statistics.span_bytes += above(one.capacity_bytes, out);
    }
    statistics.depot_bytes = above(statistics.depot_bytes, statistics.lost_bytes);
    statistics.trimmable_span_bytes =
        std::min(statistics.trimmable_span_bytes, statistics.span_bytes);
}

/// Reads a counter that must not be seen before the counter that includes it. Pairs with
/// `add_release`.
inline std::uint64_t read_first(const detail::Counter& counter) noexcept {
    return counter.load(std::memory_order_acquire);
}

/// Sums the counters of a pool's threads. The frees of all threads must be added before the
/// allocations, so that the bytes in use are never negative.
class PoolSums {
public:
    /// Adds counters of blocks of this series of sizes (base/block_sizes.hpp).
    void add_frees(const detail::ThreadCounters& thread, unsigned series) noexcept {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            const detail::BucketCounters& counted = thread.buckets[bucket];
            const std::uint64_t bytes = base::block_bytes(series, bucket);
            Bucket& row = buckets_[base::row_of(series, bucket)];
            const std::uint64_t before = row.statistics.deallocations;
            add_words(buckets::fields, Reading::first, as_words(counted),
                      &row.statistics.block_bytes);
            row.freed_bytes += (row.statistics.deallocations - before) * bytes;
            row.returned_bytes += read_first(counted.returned) * bytes;
        }
        freed_large_bytes_ += read_first(thread.large.deallocated_bytes);
        add_words(large_blocks::fields, Reading::first, as_words(thread.large),
                  &large_.in_use_bytes);
    }
    void add_allocations(const detail::ThreadCounters& thread, unsigned series) noexcept {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            const detail::BucketCounters& counted = thread.buckets[bucket];
            const std::uint64_t bytes = base::block_bytes(series, bucket);
            Bucket& row = buckets_[base::row_of(series, bucket)];
            const std::uint64_t before = row.statistics.allocations;
            add_words(buckets::fields, Reading::second, as_words(counted),
                      &row.statistics.block_bytes);
            row.statistics.allocated_bytes += (row.statistics.allocations - before) * bytes;
            row.taken_bytes += read(counted.taken) * bytes;
        }
        add_words(large_blocks::fields, Reading::second, as_words(thread.large),
                  &large_.in_use_bytes);
    }

    /// Returns the statistics of the pool: the sums, and what is counted once for the pool.
    PoolStatistics with(const PoolRecord& pool) const noexcept {
        PoolStatistics statistics;
        statistics.id = read(pool.id);
        load_name(pool.name, statistics.name);
        statistics.limit_bytes = read(pool.limit_bytes);
        add_words(pools::table.shown_fields(), Reading::second, as_words(pool.totals),
                  &statistics.id);
        for (std::size_t i = 0; i != limit_kind_count; ++i) {
            statistics.failures_by_limit[i] = read(pool.totals.failures[i]);
        }
        statistics.failures = std::accumulate(statistics.failures_by_limit.begin(),
                                              statistics.failures_by_limit.end(), std::uint64_t{0});
        fill_in(statistics);
        add_parts(statistics);
        add_depots_and_spans(statistics, pool.totals);
        statistics.lost_bytes += read(pool.totals.lost_large_bytes);
        // Allocations are read after frees, so the sum may exceed the true value while other
        // threads work. The held bytes are never less than the bytes in use.
        statistics.in_use_bytes = std::min(statistics.in_use_bytes, statistics.peak_in_use_bytes);
        return statistics;
    }

private:
    void fill_in(PoolStatistics& statistics) const noexcept {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            const Bucket& sums = buckets_[bucket];
            BucketStatistics& one = statistics.buckets[bucket];
            one = sums.statistics;
            one.block_bytes = detail::bucket_bytes(bucket);
            one.in_use_bytes = above(one.allocated_bytes, sums.freed_bytes);
            one.parked_bytes =
                above(above(sums.taken_bytes, sums.returned_bytes), one.in_use_bytes);
            one.cache_hits = above(one.allocations, one.cache_misses);
        }
        statistics.large = large_;
        statistics.large.in_use_bytes = above(large_.allocated_bytes, freed_large_bytes_);
        statistics.large.cache_misses = above(large_.allocations, large_.cache_hits);
        statistics.large.cached_bytes = statistics.cached_bytes;
    }

    struct Bucket {
        std::uint64_t freed_bytes = 0;
        std::uint64_t returned_bytes = 0;
        std::uint64_t taken_bytes = 0;
        BucketStatistics statistics = {};
    };
    Bucket buckets_[detail::bucket_count];
    std::uint64_t freed_large_bytes_ = 0;
    LargeStatistics large_ = {};
};

/// Returns the statistics of a pool, for the pool itself and for readers of its segment.
/// `for_each(function)` calls `function` with the counters of each thread and the shared ones, and
/// with their series of sizes. It is called twice, and `between_frees_and_allocations` in between.
template <class ForEach, class Between>
PoolStatistics statistics_of(const PoolRecord& pool, const ForEach& for_each,
                             const Between& between_frees_and_allocations) {
    PoolSums sums;
    for_each([&](const detail::ThreadCounters& thread, unsigned series) {
        sums.add_frees(thread, series);
    });
    between_frees_and_allocations();
    for_each([&](const detail::ThreadCounters& thread, unsigned series) {
        sums.add_allocations(thread, series);
    });
    return sums.with(pool);
}

/// Returns the free bytes in the magazines of one thread.
inline std::uint64_t parked_bytes_of(const detail::ThreadCounters& thread,
                                     unsigned series) noexcept {
    std::uint64_t bytes = 0;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const detail::BucketCounters& counted = thread.buckets[bucket];
        // A thread may have freed more blocks than it allocated, so only the whole expression is a
        // number of blocks. While the thread works, it may be below 0.
        const auto parked = static_cast<std::int64_t>(
            read_first(counted.deallocations) - read_first(counted.returned) + read(counted.taken) -
            read(counted.allocations));
        if (parked > 0)
            bytes += static_cast<std::uint64_t>(parked) * base::block_bytes(series, bucket);
    }
    return bytes + read(thread.large.parked_bytes);
}

}  // namespace tensorpool::statistics
