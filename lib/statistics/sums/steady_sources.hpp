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

/// Prevents totals from decreasing. Some totals are differences of two counters, such as the
/// allocations served by spans. A reader that was interrupted between the two reads may see a
/// smaller value than the last time. Prometheus would interpret that as a restarted program and
/// count the whole value again.
class SteadySources {
public:
    /// Replaces the totals of `pools` by their highest values so far, such that sums still add up.
    /// Pools that no longer exist are forgotten. Throws std::bad_alloc.
    void steady(std::vector<PoolStatistics>& pools);

private:
    struct OfPool {
        Sources buckets[detail::bucket_count] = {};
        std::uint64_t allocated_bytes[detail::bucket_count] = {};
        Sources large = {};
    };
    static void steady(PoolStatistics& pool, OfPool& highest) noexcept;

    std::map<std::uint64_t, OfPool> highest_;  // by the pools' ids
};

}  // namespace tensorpool::statistics
