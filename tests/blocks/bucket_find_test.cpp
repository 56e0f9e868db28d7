// Bucket::find, and how the bucket ends the process when an invalid pointer is returned to it.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "blocks/bucket.hpp"
#include "blocks/pool_parts.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

constexpr unsigned bucket_128 = 1;
constexpr unsigned bucket_4k = 6;

char* bytes_of(void* block) {
    return static_cast<char*>(block);
}

class BucketFind : public ::testing::Test {
protected:
    Bucket::Finding find(unsigned bucket, const void* p) { return pool_.set[bucket].find(p); }

    PoolParts pool_;
};

TEST_F(BucketFind, FindsTheBeginningFromEveryByteOfACarvedBlock) {
    for (const unsigned bucket : {bucket_128, bucket_4k}) {
        const std::size_t bytes = detail::bucket_bytes(bucket);
        for (void* const block : pool_.take(bucket, 3)) {
            for (const std::size_t offset :
                 {std::size_t{0}, std::size_t{1}, bytes / 2, bytes - 1}) {
                const Bucket::Finding found = find(bucket, bytes_of(block) + offset);
                EXPECT_TRUE(found.in_span);
                EXPECT_FALSE(found.home);
                EXPECT_EQ(found.block, block);
            }
        }
    }
}

TEST_F(BucketFind, BlockIsHomeUntilItIsTakenAgain) {
    const std::vector<void*> blocks = pool_.take(bucket_128, 3);
    pool_.bring_home(bucket_128, {blocks[1]});
    EXPECT_TRUE(find(bucket_128, blocks[1]).home);
    EXPECT_TRUE(find(bucket_128, bytes_of(blocks[1]) + 127).home);
    EXPECT_FALSE(find(bucket_128, blocks[0]).home);
    EXPECT_FALSE(find(bucket_128, blocks[2]).home);
    pool_.take(bucket_128, 1);
    EXPECT_FALSE(find(bucket_128, blocks[1]).home);
}

TEST_F(BucketFind, UncarvedBlockIsNotFound) {
    void* const last = pool_.take(bucket_128, 3).front();
    EXPECT_TRUE(find(bucket_128, bytes_of(last) + 127).in_span);
    EXPECT_FALSE(find(bucket_128, bytes_of(last) + 128).in_span);
}

TEST_F(BucketFind, GapBetweenTwoBlocksBelongsToNeither) {
    void* const block = pool_.take(bucket_4k, 2).back();
    EXPECT_TRUE(find(bucket_4k, bytes_of(block) + 4095).in_span);
    EXPECT_FALSE(find(bucket_4k, bytes_of(block) + 4096).in_span);
    EXPECT_FALSE(find(bucket_4k, bytes_of(block) + 4096 + 63).in_span);
    EXPECT_TRUE(find(bucket_4k, bytes_of(block) + 4096 + 64).in_span);
}

TEST_F(BucketFind, RemainderOfASpanBelongsToNoBlock) {
    const BucketLayout& layout = bucket_layouts[bucket_4k];
    void* const first = pool_.take(bucket_4k, layout.blocks).back();
    const std::size_t used = layout.blocks * layout.stride;
    const std::size_t span = layout.pages * pages::page_bytes;
    ASSERT_GT(span, used);
    EXPECT_TRUE(find(bucket_4k, bytes_of(first) + used - 64 - 1).in_span);
    EXPECT_FALSE(find(bucket_4k, bytes_of(first) + used).in_span);
    EXPECT_FALSE(find(bucket_4k, bytes_of(first) + span - 1).in_span);
}

TEST_F(BucketFind, RejectsPointersOfOtherBucketsPoolsAndMemory) {
    PoolParts other;
    int on_stack = 0;
    EXPECT_FALSE(find(bucket_128, pool_.take(bucket_4k, 1)[0]).in_span);
    EXPECT_FALSE(find(bucket_128, other.take(bucket_128, 1)[0]).in_span);
    EXPECT_FALSE(find(bucket_128, &on_stack).in_span);
    EXPECT_FALSE(find(bucket_128, nullptr).in_span);
}

TEST_F(BucketFind, FreedSpanIsNotFound) {
    const std::vector<void*> blocks = pool_.take(bucket_128, 1);
    pool_.bring_home(bucket_128, blocks);
    EXPECT_FALSE(find(bucket_128, blocks[0]).in_span);
}

// `find` accepts any pointer. The block's span may be returning to the page heap, where it may be
// merged with a neighbour and its record freed.
TEST_F(BucketFind, FindIsSafeWhileSpansAreFreedAndReused) {
    PoolParts pool({.states = States::requests});
    const BucketLayout& layout = bucket_layouts[bucket_4k];
    const std::vector<void*> first = pool.take(bucket_4k, layout.blocks * 3);
    pool.bring_home(bucket_4k, first);
    std::atomic<bool> done = false;
    std::atomic<unsigned> found = 0;
    std::thread reader([&] {
        while (!done) {
            for (void* const block : first)
                found += pool.set[bucket_4k].find(block).in_span ? 1 : 0;
        }
    });
    for (unsigned round = 0; round < 1000; ++round) {
        const std::vector<void*> blocks = pool.take(bucket_4k, layout.blocks * 3);
        for (void* const block : blocks) pool.bring_home(bucket_4k, {block});
    }
    done = true;
    reader.join();
    EXPECT_EQ(pool.capacity_of(bucket_4k), 0U);
}

class BucketMisuseDeathTest : public BucketFind {};

TEST_F(BucketMisuseDeathTest, BlockReturnedTwiceAborts) {
    const std::vector<void*> blocks = pool_.take(bucket_128, 2);
    pool_.bring_home(bucket_128, {blocks[0]});
    EXPECT_DEATH(pool_.bring_home(bucket_128, {blocks[0]}), "tensorpool: .*freed twice");
}

TEST_F(BucketMisuseDeathTest, BlockTwiceInOneBatchAborts) {
    const std::vector<void*> blocks = pool_.take(bucket_128, 1);
    EXPECT_DEATH(pool_.bring_home(bucket_128, {blocks[0], blocks[0]}), "tensorpool: ");
}

TEST_F(BucketMisuseDeathTest, BlockOfAFreedSpanAborts) {
    const std::vector<void*> blocks = pool_.take(bucket_128, 1);
    pool_.bring_home(bucket_128, blocks);
    EXPECT_DEATH(pool_.bring_home(bucket_128, blocks), "tensorpool: .*bucket 128 B");
}

TEST_F(BucketMisuseDeathTest, PointerIntoABlockAborts) {
    const std::vector<void*> blocks = pool_.take(bucket_128, 1);
    EXPECT_DEATH(pool_.bring_home(bucket_128, {bytes_of(blocks[0]) + 64}),
                 "tensorpool: .*bucket 128 B");
}

TEST_F(BucketMisuseDeathTest, UncarvedBlockAborts) {
    void* const last = pool_.take(bucket_128, 2).front();
    EXPECT_DEATH(pool_.bring_home(bucket_128, {bytes_of(last) + 128}),
                 "tensorpool: .*bucket 128 B");
}

TEST_F(BucketMisuseDeathTest, BlockOfAnotherBucketAborts) {
    const std::vector<void*> blocks = pool_.take(bucket_4k, 1);
    EXPECT_DEATH(pool_.bring_home(bucket_128, blocks), "tensorpool: .*bucket 128 B");
}

TEST_F(BucketMisuseDeathTest, BlockOfAnotherPoolAborts) {
    PoolParts other;
    const std::vector<void*> blocks = other.take(bucket_128, 1);
    EXPECT_DEATH(pool_.bring_home(bucket_128, blocks), "tensorpool: .*bucket 128 B");
}

TEST_F(BucketMisuseDeathTest, MemoryOutsideOfPoolsAborts) {
    int on_stack = 0;
    EXPECT_DEATH(pool_.bring_home(bucket_128, {&on_stack}), "tensorpool: .*bucket 128 B");
}

}  // namespace
}  // namespace tensorpool::blocks
