#include "blocks/bucket_shard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "blocks/pool_parts.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

class HardenedBucket : public ::testing::TestWithParam<unsigned> {
protected:
    PoolParts pool_{{.states = States::hardened}};
};
INSTANTIATE_TEST_SUITE_P(Buckets, HardenedBucket, ::testing::Values(0U, 4U));

TEST_P(HardenedBucket, EveryBlockOfASpanIsTakenOnce) {
    const unsigned bucket = GetParam();
    const unsigned count = pool_.set[bucket].traits.layout.blocks;
    std::vector<void*> blocks = pool_.take(bucket, 1);
    const std::size_t capacity = pool_.capacity_of(bucket);
    while (blocks.size() != count) blocks.push_back(pool_.take(bucket, 1).front());
    EXPECT_EQ(pool_.capacity_of(bucket), capacity);
    std::sort(blocks.begin(), blocks.end());
    EXPECT_EQ(std::adjacent_find(blocks.begin(), blocks.end()), blocks.end());
    pool_.bring_home(bucket, blocks);
}

TEST_P(HardenedBucket, BlocksAreTakenInNoOrder) {
    const unsigned bucket = GetParam();
    const std::vector<void*> blocks = pool_.take(bucket, 30);
    EXPECT_FALSE(std::is_sorted(blocks.begin(), blocks.end()));
    EXPECT_FALSE(std::is_sorted(blocks.rbegin(), blocks.rend()));
    pool_.bring_home(bucket, blocks);
}

}  // namespace
}  // namespace tensorpool::blocks
