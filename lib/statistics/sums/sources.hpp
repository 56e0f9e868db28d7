#pragma once

#include <algorithm>
#include <cstdint>

#include <tensorpool/statistics.hpp>

namespace tensorpool::statistics {

/// Allocations by what served them. The values add up to all allocations.
struct Sources {
    std::uint64_t magazines = 0;  // the thread's magazines
    std::uint64_t depots = 0;     // magazines that no thread held
    std::uint64_t spans = 0;      // spans of buckets
    std::uint64_t extents = 0;    // free runs of whole pages, including the large-block cache
    std::uint64_t system = 0;     // the pool had to grow
};

inline Sources sources_of(const BucketStatistics& bucket) noexcept {
    const auto above = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
    return {.magazines = bucket.cache_hits,
            .depots = bucket.depot_hits,
            .spans = above(bucket.cache_misses, bucket.depot_hits + bucket.system_misses),
            .extents = 0,
            .system = bucket.system_misses};
}

inline Sources sources_of(const LargeStatistics& large) noexcept {
    const std::uint64_t system = std::min(large.system_misses, large.allocations);
    return {.extents = large.allocations - system, .system = system};
}

inline Sources& operator+=(Sources& sum, const Sources& part) noexcept {
    sum.magazines += part.magazines;
    sum.depots += part.depots;
    sum.spans += part.spans;
    sum.extents += part.extents;
    sum.system += part.system;
    return sum;
}

inline Sources sources_of(const PoolStatistics& pool) noexcept {
    Sources sum = sources_of(pool.large);
    for (const BucketStatistics& bucket : pool.buckets) sum += sources_of(bucket);
    return sum;
}

}  // namespace tensorpool::statistics
