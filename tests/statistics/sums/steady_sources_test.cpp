#include "statistics/sums/steady_sources.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace tensorpool::statistics {
namespace {

/// A pool with these counters in its only used bucket.
PoolStatistics pool_with(std::uint64_t id, std::uint64_t hits, std::uint64_t misses,
                         std::uint64_t depot_hits) {
    PoolStatistics pool;
    pool.id = id;
    BucketStatistics& bucket = pool.buckets[0];
    bucket.block_bytes = 64;
    bucket.cache_hits = pool.cache_hits = hits;
    bucket.cache_misses = pool.cache_misses = misses;
    bucket.depot_hits = depot_hits;
    bucket.allocations = pool.allocations = hits + misses;
    bucket.allocated_bytes = pool.allocated_bytes = 64 * (hits + misses);
    return pool;
}

TEST(SteadySources, KeepIncreasingValuesUnchanged) {
    SteadySources sources;
    std::vector<PoolStatistics> pools = {pool_with(1, 100, 10, 4)};
    sources.steady(pools);
    pools = {pool_with(1, 150, 12, 5)};
    pools[0].large.allocations = 7;
    pools[0].large.cache_hits = 3;
    pools[0].large.cache_misses = 4;
    pools[0].large.system_misses = 2;
    pools[0].allocations += 7;
    pools[0].cache_hits += 3;
    pools[0].cache_misses += 4;
    pools[0].system_misses = 2;
    const std::string before = to_json(pools[0]);
    sources.steady(pools);
    EXPECT_EQ(to_json(pools[0]), before);
}

// The reader was interrupted after it read the allocations, so it saw misses of later ones.
TEST(SteadySources, HitsDoNotDecrease) {
    SteadySources sources;
    std::vector<PoolStatistics> pools = {pool_with(1, 100, 10, 10)};
    sources.steady(pools);
    pools = {pool_with(1, 95, 16, 16)};
    sources.steady(pools);
    const PoolStatistics& pool = pools[0];
    EXPECT_EQ(pool.cache_hits, 100U);
    EXPECT_EQ(pool.cache_misses, 16U);
    EXPECT_EQ(pool.allocations, 116U) << "the sources still add up";
    EXPECT_EQ(pool.allocated_bytes, 116U * 64);
}

// Blocks of 48 B count in the bucket of 64 B.
TEST(SteadySources, BytesOfFinerSizesAreExactAtRest) {
    SteadySources sources;
    std::vector<PoolStatistics> pools;
    for (const auto& [hits, misses] : {std::pair{9, 1}, {8, 2}, {9, 2}}) {
        pools = {pool_with(1, static_cast<std::uint64_t>(hits), static_cast<std::uint64_t>(misses),
                           static_cast<std::uint64_t>(misses))};
        pools[0].buckets[0].allocated_bytes = pools[0].allocations * 48;
        sources.steady(pools);
    }
    EXPECT_EQ(pools[0].allocations, 11U);
    EXPECT_EQ(pools[0].allocated_bytes, 11U * 48);
}

TEST(SteadySources, AllocationsFromSpansDoNotDecrease) {
    SteadySources sources;
    std::vector<PoolStatistics> pools = {pool_with(1, 0, 10, 4)};
    sources.steady(pools);
    pools = {pool_with(1, 0, 10, 6)};
    sources.steady(pools);
    EXPECT_EQ(sources_of(pools[0])[spans], 6U);
    EXPECT_EQ(sources_of(pools[0])[depots], 6U);
}

TEST(SteadySources, PoolsAreTrackedSeparatelyAndForgotten) {
    SteadySources sources;
    std::vector<PoolStatistics> pools = {pool_with(1, 100, 0, 0), pool_with(2, 5, 0, 0)};
    sources.steady(pools);
    pools = {pool_with(2, 6, 0, 0)};
    sources.steady(pools);
    EXPECT_EQ(pools[0].cache_hits, 6U);
    pools = {pool_with(1, 1, 0, 0)};
    sources.steady(pools);
    EXPECT_EQ(pools[0].cache_hits, 1U);
}

}  // namespace
}  // namespace tensorpool::statistics
