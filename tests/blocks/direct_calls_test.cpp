#include "blocks/bucket_set.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "blocks/pool_parts.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

constexpr unsigned bucket_1k = 4;

TEST(DirectCalls, BlocksComeFromSpansAndReturnThere) {
    PoolParts pool;
    void* const block = pool.allocate_direct(bucket_1k, 1)[0];
    EXPECT_EQ(pool.in_use_bytes(), 1024U);
    EXPECT_EQ(pool.held_bytes(), 1024U);
    EXPECT_EQ(pool.parked_bytes(), 0U);
    EXPECT_TRUE(pool.set[bucket_1k].spans.find(block).in_span);
    deallocate_direct(pool.set, bucket_1k, block, PoolParts::path());
    EXPECT_EQ(pool.in_use_bytes(), 0U);
    EXPECT_EQ(pool.held_bytes(), 0U);
    EXPECT_EQ(pool.parked_bytes(), 0U);
    EXPECT_EQ(pool.capacity_of(bucket_1k), 0U);
    const BucketStatistics values = pool.sums().buckets[bucket_1k];
    EXPECT_EQ(values.allocations, 1U);
    EXPECT_EQ(values.deallocations, 1U);
    EXPECT_EQ(values.requested_bytes, 1024U);
    EXPECT_EQ(values.cache_misses, 1U);
}

TEST(DirectCalls, RefusedBlockIsNotCounted) {
    PoolParts pool({.max_capacity = 4096});
    EXPECT_EQ(pool.allocate_direct(detail::bucket_count - 1, 1)[0], nullptr);
    EXPECT_EQ(pool.sums().buckets[detail::bucket_count - 1].allocations, 0U);
    EXPECT_EQ(pool.held_bytes(), 0U);
}

TEST(DirectCalls, SampleCountsAsAHit) {
    PoolParts pool;
    void* const block = allocate_direct(pool.set, bucket_1k, 1000, PoolParts::path(), CountAs::hit);
    EXPECT_EQ(pool.sums().buckets[bucket_1k].allocations, 1U);
    EXPECT_EQ(pool.sums().buckets[bucket_1k].cache_misses, 0U);
    deallocate_direct(pool.set, bucket_1k, block, PoolParts::path());
}

}  // namespace
}  // namespace tensorpool::blocks
