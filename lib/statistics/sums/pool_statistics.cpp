#include "statistics/sums/pool_statistics.hpp"

#include <algorithm>
#include <numeric>

#include "base/block_sizes.hpp"
#include "statistics/segment/name.hpp"
#include "statistics/sums/counter_words.hpp"

namespace tensorpool::statistics {
namespace {

using detail::bucket_count;

/// Computes the bytes of the buckets that are neither in use nor parked: in depots and in spans.
void add_places(PoolStatistics& figures, const PoolTotals& totals) noexcept {
    for (unsigned bucket = 0; bucket < bucket_count; ++bucket) {
        BucketStatistics& one = figures.buckets[bucket];
        const std::uint64_t out = read(totals.bucket_out_bytes[bucket]);
        one.capacity_bytes = read(totals.bucket_capacity_bytes[bucket]);
        one.depot_bytes = above(out, one.in_use_bytes + one.parked_bytes);
        figures.depot_bytes += one.depot_bytes;
        figures.span_bytes += above(one.capacity_bytes, out);
    }
    figures.depot_bytes = above(figures.depot_bytes, figures.lost_bytes);
}

/// Adds the metrics that buckets and large blocks have in common.
template <class Part>
void add_part(PoolStatistics& figures, const Part& part) noexcept {
    figures.in_use_bytes += part.in_use_bytes;
    figures.requested_bytes += part.requested_bytes;
    figures.allocated_bytes += part.allocated_bytes;
    figures.allocations += part.allocations;
    figures.deallocations += part.deallocations;
    figures.cache_hits += part.cache_hits;
    figures.cache_misses += part.cache_misses;
    figures.system_misses += part.system_misses;
}

void add_parts(PoolStatistics& figures) noexcept {
    for (const BucketStatistics& bucket : figures.buckets) {
        add_part(figures, bucket);
        figures.parked_bytes += bucket.parked_bytes;
    }
    add_part(figures, figures.large);
    figures.parked_bytes += figures.large.parked_bytes;
}

}  // namespace

void PoolSums::add_frees(const detail::ThreadCounters& thread, unsigned series) noexcept {
    for (unsigned bucket = 0; bucket < bucket_count; ++bucket) {
        const detail::BucketCounters& counted = thread.buckets[bucket];
        const std::uint64_t bytes = base::block_bytes(series, bucket);
        Bucket& row = buckets_[base::row_of(series, bucket)];
        const std::uint64_t before = row.figures.deallocations;
        add_counters(row.figures, counted, Reading::first);
        row.freed_bytes += (row.figures.deallocations - before) * bytes;
        row.returned_bytes += read_first(counted.returned) * bytes;
    }
    freed_large_bytes_ += read_first(thread.large.deallocated_bytes);
    add_counters(large_, thread.large, Reading::first);
}

void PoolSums::add_allocations(const detail::ThreadCounters& thread, unsigned series) noexcept {
    for (unsigned bucket = 0; bucket < bucket_count; ++bucket) {
        const detail::BucketCounters& counted = thread.buckets[bucket];
        const std::uint64_t bytes = base::block_bytes(series, bucket);
        Bucket& row = buckets_[base::row_of(series, bucket)];
        const std::uint64_t before = row.figures.allocations;
        add_counters(row.figures, counted, Reading::second);
        row.figures.allocated_bytes += (row.figures.allocations - before) * bytes;
        row.taken_bytes += read(counted.taken) * bytes;
    }
    add_counters(large_, thread.large, Reading::second);
}

void PoolSums::fill_in(PoolStatistics& figures) const noexcept {
    for (unsigned bucket = 0; bucket < bucket_count; ++bucket) {
        const Bucket& sums = buckets_[bucket];
        BucketStatistics& one = figures.buckets[bucket];
        one = sums.figures;
        one.block_bytes = detail::bucket_bytes(bucket);
        one.in_use_bytes = above(one.allocated_bytes, sums.freed_bytes);
        one.parked_bytes = above(above(sums.taken_bytes, sums.returned_bytes), one.in_use_bytes);
        one.cache_hits = above(one.allocations, one.cache_misses);
    }
    figures.large = large_;
    figures.large.in_use_bytes = above(large_.allocated_bytes, freed_large_bytes_);
    figures.large.cache_misses = above(large_.allocations, large_.cache_hits);
    figures.large.cached_bytes = figures.cached_bytes;
}

PoolStatistics PoolSums::with(const PoolRecord& pool) const noexcept {
    PoolStatistics figures;
    figures.id = read(pool.id);
    load_name(pool.name, figures.name);
    figures.limit_bytes = read(pool.limit_bytes);
    figures.threads = read(pool.threads);
    add_counters(figures, pool.totals, Reading::second);
    figures.failures = std::accumulate(figures.failures_by_limit.begin(),
                                       figures.failures_by_limit.end(), std::uint64_t{0});
    fill_in(figures);
    add_parts(figures);
    add_places(figures, pool.totals);
    figures.lost_bytes += read(pool.totals.lost_large_bytes);
    // Allocations are read after frees, so the sum may exceed the true value while other threads
    // work. The held bytes are never less than the bytes in use.
    figures.in_use_bytes = std::min(figures.in_use_bytes, figures.peak_in_use_bytes);
    return figures;
}

std::uint64_t parked_bytes_of(const detail::ThreadCounters& thread, unsigned series) noexcept {
    std::uint64_t bytes = 0;
    for (unsigned bucket = 0; bucket < bucket_count; ++bucket) {
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
