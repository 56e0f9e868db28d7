#include "statistics/segment/pool_counters.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "statistics/own_counters.hpp"

namespace tensorpool::statistics {
namespace {

using detail::add;
using detail::add_release;

PoolStatistics sum_of(const PoolCounters& pool) {
    return pool.statistics();
}

TEST(PoolCounters, AreDistinctAndZero) {
    testing::OwnCounters pool;
    std::set<OwnedCounters*> taken;
    for (int i = 0; i < 100; ++i) {
        OwnedCounters* const owned = pool.take();
        ASSERT_NE(owned, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(owned->counters) % 64, 0U);
        EXPECT_EQ(owned->counters->large.allocations, 0U);
        taken.insert(owned);
    }
    EXPECT_EQ(taken.size(), 100U);
    EXPECT_EQ(pool.taken_count(), 100U);
    EXPECT_GE(pool.record_bytes(), 100 * sizeof(CountersRecord));
    EXPECT_LE(pool.record_bytes(), 160 * sizeof(CountersRecord));
}

TEST(PoolCounters, NextThreadContinuesReturnedCounters) {
    testing::OwnCounters pool;
    OwnedCounters* const first = pool.take();
    add(first->counters->buckets[0].allocations, 5);
    pool.give_back(*first);
    EXPECT_EQ(pool.taken_count(), 0U);
    EXPECT_EQ(pool.allocations(), 5U) << "the counts of ended threads are kept";

    OwnedCounters* const second = pool.take();
    EXPECT_EQ(second, first);
    add(second->counters->buckets[0].allocations, 2);
    EXPECT_EQ(pool.allocations(), 7U);
}

TEST(PoolCounters, ManyShortThreadsReuseMemory) {
    testing::OwnCounters pool;
    pool.give_back(*pool.take());
    const std::size_t held = pool.record_bytes();
    for (int thread = 0; thread < 1000; ++thread) pool.give_back(*pool.take());
    EXPECT_EQ(pool.record_bytes(), held);
}

TEST(PoolCounters, SumsBucketsOfAllCounters) {
    testing::OwnCounters pool;
    for (detail::ThreadCounters* counters :
         {pool.take()->counters, pool.take()->counters, &pool.shared()}) {
        detail::BucketCounters& bucket = counters->buckets[4];
        add(bucket.allocations, 10);
        add(bucket.requested_bytes, 9000);
        add(bucket.misses, 3);
        add(bucket.depot_hits, 2);
        add(bucket.taken, 12);
        add(bucket.returned, 1);
        add_release(bucket.deallocations, 6);
    }
    const BucketStatistics bucket = sum_of(pool).buckets[4];
    EXPECT_EQ(bucket.block_bytes, 1024U);
    EXPECT_EQ(bucket.allocations, 30U);
    EXPECT_EQ(bucket.deallocations, 18U);
    EXPECT_EQ(bucket.in_use_bytes, 12 * 1024U);
    EXPECT_EQ(bucket.parked_bytes, 21 * 1024U) << "taken - returned - in use";
    EXPECT_EQ(bucket.requested_bytes, 27'000U);
    EXPECT_EQ(bucket.allocated_bytes, 30 * 1024U);
    EXPECT_EQ(bucket.cache_misses, 9U);
    EXPECT_EQ(bucket.cache_hits, 21U);
    EXPECT_EQ(bucket.depot_hits, 6U);
    EXPECT_EQ(pool.allocations(), 30U);
    EXPECT_EQ(pool.deallocations(), 18U);
    EXPECT_EQ(pool.in_use_bytes(), 12 * 1024U);
}

TEST(PoolCounters, SumsLargeBlocksOfAllCounters) {
    testing::OwnCounters pool;
    for (detail::ThreadCounters* counters : {pool.take()->counters, &pool.shared()}) {
        detail::LargeCounters& large = counters->large;
        add(large.allocations, 4);
        add(large.requested_bytes, 390'000);
        add(large.allocated_bytes, 400'000);
        add(large.cache_hits, 3);
        add_release(large.deallocations, 1);
        add_release(large.deallocated_bytes, 100'000);
    }
    const LargeStatistics large = sum_of(pool).large;
    EXPECT_EQ(large.allocations, 8U);
    EXPECT_EQ(large.deallocations, 2U);
    EXPECT_EQ(large.in_use_bytes, 600'000U);
    EXPECT_EQ(large.requested_bytes, 780'000U);
    EXPECT_EQ(large.allocated_bytes, 800'000U);
    EXPECT_EQ(large.cache_hits, 6U);
    EXPECT_EQ(large.cache_misses, 2U);
    EXPECT_EQ(pool.allocations(), 8U);
    EXPECT_EQ(pool.deallocations(), 2U);
    EXPECT_EQ(pool.in_use_bytes(), 600'000U);
}

TEST(PoolCounters, BlockFreedByAnotherThreadIsNotInUse) {
    testing::OwnCounters pool;
    OwnedCounters* const one = pool.take();
    OwnedCounters* const other = pool.take();
    add(one->counters->buckets[0].allocations, 3);
    add_release(other->counters->buckets[0].deallocations, 3);
    EXPECT_EQ(pool.in_use_bytes(), 0U);
    EXPECT_EQ(sum_of(pool).buckets[0].in_use_bytes, 0U);
}

}  // namespace
}  // namespace tensorpool::statistics
