#include "statistics/sums/pool_statistics.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace tensorpool::statistics {
namespace {

void put(Counter& counter, std::uint64_t value) {
    counter.store(value, std::memory_order_relaxed);
}

/// A pool of two threads, one of which freed blocks that the other allocated.
struct Fixture {
    std::unique_ptr<PoolRecord> pool = std::make_unique<PoolRecord>();
    std::vector<std::unique_ptr<detail::ThreadCounters>> threads;
    std::vector<std::pair<std::unique_ptr<detail::ThreadCounters>, unsigned>> finer;

    Fixture() {
        for (int i = 0; i < 2; ++i) threads.push_back(std::make_unique<detail::ThreadCounters>());
        put(pool->id, 7);
        put(pool->limit_bytes, 1 << 30);
        put(pool->totals.threads, 2);
        put(pool->totals.peak_held_bytes, 1 << 20);
        put(pool->totals.record_bytes, 4096);
        detail::BucketCounters& giver = threads[0]->buckets[2];
        put(giver.allocations, 10);
        put(giver.requested_bytes, 2000);
        put(giver.misses, 3);
        put(giver.depot_hits, 1);
        put(giver.system_misses, 1);
        put(giver.taken, 12);
        detail::BucketCounters& taker = threads[1]->buckets[2];
        put(taker.deallocations, 4);
        put(taker.returned, 1);
        put(pool->totals.bucket_out_bytes[2], 20 * 256);
        put(pool->totals.bucket_capacity_bytes[2], 65536);
    }

    detail::ThreadCounters& add_finer(unsigned series) {
        finer.emplace_back(std::make_unique<detail::ThreadCounters>(), series);
        return *finer.back().first;
    }

    PoolStatistics statistics() {
        return statistics_of(
            *pool,
            [&](auto&& function) {
                function(pool->shared, 0U);
                for (const auto& thread : threads) function(*thread, 0U);
                for (const auto& [counters, series] : finer) function(*counters, series);
            },
            [] {});
    }
};

TEST(StatisticsOfPool, SumBucketsOverThreads) {
    const PoolStatistics statistics = Fixture().statistics();
    const BucketStatistics& bucket = statistics.buckets[2];
    EXPECT_EQ(bucket.block_bytes, 256U);
    EXPECT_EQ(bucket.allocations, 10U);
    EXPECT_EQ(bucket.deallocations, 4U);
    EXPECT_EQ(bucket.in_use_bytes, 6U * 256);
    EXPECT_EQ(bucket.requested_bytes, 2000U);
    EXPECT_EQ(bucket.allocated_bytes, 2560U);
    EXPECT_EQ(bucket.cache_hits, 7U);
    EXPECT_EQ(bucket.cache_misses, 3U);
    EXPECT_EQ(bucket.depot_hits, 1U);
    EXPECT_EQ(bucket.system_misses, 1U);
    EXPECT_EQ(statistics.id, 7U);
    EXPECT_EQ(statistics.limit_bytes, std::uint64_t{1} << 30);
    EXPECT_EQ(statistics.threads, 2U);
    EXPECT_EQ(statistics.system_misses, 1U);
}

TEST(StatisticsOfPool, DivideBytesOfBucketByLocation) {
    const PoolStatistics statistics = Fixture().statistics();
    const BucketStatistics& bucket = statistics.buckets[2];
    // 20 blocks are out: 6 are in use, 11 - 6 are parked, and the others are in the depot.
    EXPECT_EQ(bucket.parked_bytes, 5U * 256);
    EXPECT_EQ(bucket.depot_bytes, 9U * 256);
    EXPECT_EQ(statistics.depot_bytes, 9U * 256);
    EXPECT_EQ(statistics.span_bytes, 65536U - 20 * 256);
    EXPECT_EQ(
        bucket.in_use_bytes + bucket.parked_bytes + bucket.depot_bytes + statistics.span_bytes,
        bucket.capacity_bytes);
}

TEST(StatisticsOfPool, BlocksLostByForkAreNeitherParkedNorInDepot) {
    Fixture fixture;
    put(fixture.pool->totals.lost_bytes, 2 * 256);
    EXPECT_EQ(fixture.statistics().depot_bytes, 7U * 256);
    put(fixture.pool->totals.lost_bytes, 1 << 20);
    EXPECT_EQ(fixture.statistics().depot_bytes, 0U);
}

TEST(StatisticsOfPool, AreNeverNegative) {
    Fixture fixture;
    put(fixture.threads[1]->buckets[2].deallocations, 1000);
    put(fixture.threads[1]->buckets[2].returned, 1000);
    put(fixture.threads[0]->buckets[2].misses, 1000);
    put(fixture.threads[0]->large.deallocated_bytes, 1000);
    put(fixture.pool->totals.bucket_capacity_bytes[2], 0);
    const PoolStatistics statistics = fixture.statistics();
    EXPECT_EQ(statistics.in_use_bytes, 0U);
    EXPECT_EQ(statistics.parked_bytes, 0U);
    EXPECT_EQ(statistics.cache_hits, 0U);
    EXPECT_EQ(statistics.span_bytes, 0U);
    EXPECT_EQ(statistics.large.in_use_bytes, 0U);
}

TEST(StatisticsOfPool, SumFailuresByLimit) {
    Fixture fixture;
    for (unsigned limit = 0; limit < 6; ++limit) put(fixture.pool->totals.failures[limit], limit);
    const PoolStatistics statistics = fixture.statistics();
    EXPECT_EQ(statistics.failures, 15U);
    EXPECT_EQ(statistics.failures_by_limit[4], 4U);
}

TEST(StatisticsOfPool, SumBucketsAndLargeBlocks) {
    Fixture fixture;
    detail::LargeCounters& large = fixture.threads[1]->large;
    put(large.allocations, 5);
    put(large.requested_bytes, 500000);
    put(large.allocated_bytes, 524288);
    put(large.deallocations, 4);
    put(large.deallocated_bytes, 400000);
    put(large.cache_hits, 3);
    put(large.system_misses, 2);
    const PoolStatistics statistics = fixture.statistics();
    EXPECT_EQ(statistics.large.in_use_bytes, 124288U);
    EXPECT_EQ(statistics.large.cache_misses, 2U);
    EXPECT_EQ(statistics.in_use_bytes, 124288U + 6 * 256);
    EXPECT_EQ(statistics.allocations, 15U);
    EXPECT_EQ(statistics.deallocations, 8U);
    EXPECT_EQ(statistics.requested_bytes, 502000U);
    EXPECT_EQ(statistics.allocated_bytes, 524288U + 2560);
    EXPECT_EQ(statistics.cache_hits, 10U);
    EXPECT_EQ(statistics.cache_misses, 5U);
    EXPECT_EQ(statistics.system_misses, 3U);
}

// The block that is freed between the two sums was allocated before the sum: it counts as in use.
TEST(StatisticsOfPool, SumFreesBeforeAllocations) {
    Fixture fixture;
    const PoolStatistics statistics = statistics_of(
        *fixture.pool,
        [&](auto&& function) {
            for (const auto& thread : fixture.threads) function(*thread, 0U);
        },
        [&] {
            detail::add(fixture.threads[0]->buckets[2].allocations, 1);
            detail::add(fixture.threads[1]->buckets[2].deallocations, 1);
        });
    EXPECT_EQ(statistics.buckets[2].in_use_bytes, 7U * 256);
}

// Number 1 of series 1 is 160 B, which belongs to the bucket of 256 B.
TEST(StatisticsOfPool, FinerSizesCountInRowOfServingBucket) {
    Fixture fixture;
    detail::ThreadCounters& finer = fixture.add_finer(1);
    put(finer.buckets[1].allocations, 5);
    put(finer.buckets[1].requested_bytes, 700);
    put(finer.buckets[1].deallocations, 2);
    put(finer.buckets[1].taken, 8);
    put(finer.buckets[1].returned, 1);
    put(fixture.add_finer(3).buckets[10].allocations, 3);  // 48 B
    put(fixture.pool->totals.bucket_out_bytes[2], 20 * 256 + 9 * 160);
    const PoolStatistics statistics = fixture.statistics();
    EXPECT_EQ(statistics.buckets[2].allocations, 15U);
    EXPECT_EQ(statistics.buckets[2].requested_bytes, 2700U);
    EXPECT_EQ(statistics.buckets[2].in_use_bytes, 6U * 256 + 3 * 160);
    EXPECT_EQ(statistics.buckets[2].allocated_bytes, 2560U + 5 * 160);
    EXPECT_EQ(statistics.buckets[2].parked_bytes, 5U * 256 + 4 * 160);
    EXPECT_EQ(statistics.buckets[2].depot_bytes, 9U * 256 + 2 * 160);
    EXPECT_EQ(statistics.buckets[0].in_use_bytes, 3U * 48);
    EXPECT_EQ(statistics.in_use_bytes, 6U * 256 + 3 * 160 + 3 * 48);
    EXPECT_EQ(parked_bytes_of(finer, 1), 4U * 160);
}

TEST(StatisticsOfPool, ParkedBytesIncludeBlocksFreedForOtherThreads) {
    const Fixture fixture;
    EXPECT_EQ(parked_bytes_of(*fixture.threads[0], 0), 2U * 256);
    EXPECT_EQ(parked_bytes_of(*fixture.threads[1], 0), 3U * 256);
    put(fixture.threads[1]->buckets[2].returned, 9);
    EXPECT_EQ(parked_bytes_of(*fixture.threads[1], 0), 0U);
}

}  // namespace
}  // namespace tensorpool::statistics
