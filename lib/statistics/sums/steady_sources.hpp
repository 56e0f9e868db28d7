#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include <tensorpool/statistics.hpp>

namespace tensorpool::statistics {

/// Allocations by what served them: the thread's magazines, magazines that no thread held, spans of
/// buckets, free runs of whole pages with the large-block cache, and the system, for which the pool
/// had to grow. The values add up to all allocations.
using Sources = std::array<std::uint64_t, 5>;
enum Source : std::size_t { magazines, depots, spans, extents, system };

inline Sources sources_of(const BucketStatistics& bucket) noexcept {
    const std::uint64_t others = bucket.depot_hits + bucket.system_misses;
    return {bucket.cache_hits, bucket.depot_hits,
            bucket.cache_misses - std::min(bucket.cache_misses, others), 0, bucket.system_misses};
}

inline Sources sources_of(const LargeStatistics& large) noexcept {
    const std::uint64_t system = std::min(large.system_misses, large.allocations);
    return {0, 0, 0, large.allocations - system, system};
}

inline Sources sources_of(const PoolStatistics& pool) noexcept {
    Sources sum = sources_of(pool.large);
    for (const BucketStatistics& bucket : pool.buckets) {
        const Sources more = sources_of(bucket);
        for (std::size_t i = 0; i != sum.size(); ++i) sum[i] += more[i];
    }
    return sum;
}

template <class Part>
void add(PoolStatistics& pool, const Part& part) noexcept {
    pool.allocations += part.allocations;
    pool.allocated_bytes += part.allocated_bytes;
    pool.cache_hits += part.cache_hits;
    pool.cache_misses += part.cache_misses;
    pool.system_misses += part.system_misses;
}

inline void put_into(BucketStatistics& bucket, const Sources& from,
                     std::uint64_t& max_bytes) noexcept {
    const bool has_one_size = bucket.allocated_bytes == bucket.allocations * bucket.block_bytes;
    bucket.cache_hits = from[magazines];
    bucket.depot_hits = from[depots];
    bucket.system_misses = from[system];
    bucket.cache_misses = from[depots] + from[spans] + from[system];
    bucket.allocations = bucket.cache_hits + bucket.cache_misses;
    max_bytes = std::max(
        max_bytes, has_one_size ? bucket.allocations * bucket.block_bytes : bucket.allocated_bytes);
    bucket.allocated_bytes = max_bytes;
}

inline void put_into(LargeStatistics& large, const Sources& from) noexcept {
    large.system_misses = from[system];
    large.allocations = from[extents] + from[system];
    large.cache_misses = large.allocations - std::min(large.allocations, large.cache_hits);
}

inline void raise(Sources& highest, const Sources& now) noexcept {
    for (std::size_t i = 0; i != now.size(); ++i) highest[i] = std::max(highest[i], now[i]);
}

/// Prevents totals from decreasing. Some totals are differences of two counters, such as the
/// allocations served by spans. A reader that was interrupted between the two reads may see a
/// smaller value than the last time. Prometheus would interpret that as a restarted program and
/// count the whole value again.
class SteadySources {
public:
    /// Replaces the totals of `pools` by their highest values so far, such that sums still add up.
    /// Pools that no longer exist are forgotten. Throws std::bad_alloc.
    void steady(std::vector<PoolStatistics>& pools) {
        std::map<std::uint64_t, OfPool> present;
        for (PoolStatistics& pool : pools) {
            const auto known = highest_.find(pool.id);
            OfPool& highest = present[pool.id];
            if (known != highest_.end()) highest = known->second;
            steady(pool, highest);
        }
        highest_ = std::move(present);
    }

private:
    struct OfPool {
        Sources buckets[detail::bucket_count] = {};
        std::uint64_t allocated_bytes[detail::bucket_count] = {};
        Sources large = {};
    };
    static void steady(PoolStatistics& pool, OfPool& highest) noexcept {
        pool.allocations = pool.allocated_bytes = 0;
        pool.cache_hits = pool.cache_misses = pool.system_misses = 0;
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            raise(highest.buckets[bucket], sources_of(pool.buckets[bucket]));
            put_into(pool.buckets[bucket], highest.buckets[bucket],
                     highest.allocated_bytes[bucket]);
            add(pool, pool.buckets[bucket]);
        }
        raise(highest.large, sources_of(pool.large));
        put_into(pool.large, highest.large);
        add(pool, pool.large);
    }

    std::map<std::uint64_t, OfPool> highest_;  // by the pools' ids
};

}  // namespace tensorpool::statistics
