// include/tensorpool/detail/thread_cache.hpp

#include <gtest/gtest.h>
#include <tensorpool/detail/thread_cache.hpp>

#include <cstdint>
#include <thread>

namespace tensorpool::detail {
namespace {

class ThreadCacheTest : public ::testing::Test {
protected:
    ThreadCacheTest() {
        cache_.counters = &counters_;
        cache_.bytes_to_sample = ThreadCache::never_sampled;
        cache_.loaded[2].top = blocks_ + 1;
        cache_.loaded[2].bottom = blocks_;
        cache_.loaded[2].limit = blocks_ + 3;
    }

    const BucketCounters& counted() const { return counters_.buckets[2]; }

    char memory_[4] = {};
    void* blocks_[4] = {&memory_[0], nullptr, nullptr, &memory_[3]};
    ThreadCounters counters_ = {};
    ThreadCache cache_;
};

TEST_F(ThreadCacheTest, PopsTheLastPushedBlock) {
    ASSERT_TRUE(cache_.push(2, &memory_[1]));
    EXPECT_EQ(cache_.pop(2, 1), &memory_[1]);
    EXPECT_EQ(cache_.pop(2, 1), &memory_[0]);
}

TEST_F(ThreadCacheTest, PopFromAnEmptyMagazineFailsAndCountsNothing) {
    cache_.pop(2, 200);
    EXPECT_EQ(cache_.pop(2, 200), nullptr);
    EXPECT_EQ(counted().allocations, 1U);
    EXPECT_EQ(counted().requested_bytes, 200U);
    EXPECT_EQ(cache_.loaded[2].top, blocks_);
    EXPECT_EQ(cache_.bytes_to_sample, ThreadCache::never_sampled - 200);
}

TEST_F(ThreadCacheTest, PopOfMoreThanTheCountdownFailsAndCountsNothing) {
    cache_.bytes_to_sample = 199;
    EXPECT_EQ(cache_.pop(2, 200), nullptr);
    EXPECT_EQ(cache_.bytes_to_sample, 199);
    EXPECT_EQ(cache_.loaded[2].top, blocks_ + 1);
    EXPECT_EQ(counted().allocations, 0U);
    EXPECT_EQ(cache_.pop(2, 199), &memory_[0]);
    EXPECT_EQ(cache_.bytes_to_sample, 0);
}

TEST_F(ThreadCacheTest, PushToAFullMagazineFailsAndCountsNothing) {
    EXPECT_TRUE(cache_.push(2, &memory_[1]));
    EXPECT_TRUE(cache_.push(2, &memory_[2]));
    EXPECT_FALSE(cache_.push(2, &memory_[2]));
    EXPECT_EQ(counted().deallocations, 2U);
    EXPECT_EQ(blocks_[3], &memory_[3]);
}

TEST_F(ThreadCacheTest, PopAfterTakeBackFailsAndCountsNothing) {
    cache_.loaded[2].bottom = reinterpret_cast<void**>(UINTPTR_MAX);
    cache_.loaded[2].limit = nullptr;
    EXPECT_EQ(cache_.pop(2, 200), nullptr);
    EXPECT_FALSE(cache_.push(2, &memory_[1]));
    EXPECT_EQ(cache_.loaded[2].top, blocks_ + 1);
    EXPECT_EQ(counted().allocations, 0U);
    EXPECT_EQ(counted().deallocations, 0U);
}

// A push of the owner ended while another thread took back the other blocks.
TEST_F(ThreadCacheTest, BlockPushedAfterTakeBackIsPoppedAgain) {
    cache_.loaded[2].bottom = blocks_ + 1;
    cache_.push(2, &memory_[1]);
    cache_.loaded[2].limit = blocks_ + 1;
    EXPECT_FALSE(cache_.push(2, &memory_[2]));
    EXPECT_EQ(cache_.pop(2, 1), &memory_[1]);
    EXPECT_EQ(cache_.pop(2, 1), nullptr);
}

TEST_F(ThreadCacheTest, CountsEachBucketSeparately) {
    cache_.pop(2, 130);
    cache_.push(2, &memory_[0]);
    EXPECT_EQ(counted().allocations, 1U);
    EXPECT_EQ(counted().requested_bytes, 130U);
    EXPECT_EQ(counted().deallocations, 1U);
    for (unsigned bucket = 0; bucket < bucket_count; ++bucket) {
        if (bucket == 2) continue;
        EXPECT_EQ(cache_.pop(bucket, 1), nullptr);
        EXPECT_FALSE(cache_.push(bucket, &memory_[0]));
        EXPECT_EQ(counters_.buckets[bucket].allocations, 0U);
        EXPECT_EQ(counters_.buckets[bucket].deallocations, 0U);
    }
}

TEST_F(ThreadCacheTest, DoesNotWriteIntoBlocks) {
    cache_.push(2, &memory_[1]);
    cache_.pop(2, 1);
    for (const char byte : memory_) EXPECT_EQ(byte, 0);
}

TEST(ThreadTable, CacheOfANewThreadLooksEmptyAndFullForEveryPool) {
    std::thread([] {
        int block = 0;
        for (unsigned pool = 0; pool <= cached_pool_count; ++pool) {
            for (unsigned bucket = 0; bucket < bucket_count; ++bucket) {
                EXPECT_EQ(thread_cache(TablePlace(pool)).pop(bucket, 1), nullptr);
                EXPECT_FALSE(thread_cache(TablePlace(pool)).push(bucket, &block));
            }
        }
    }).join();
}

}  // namespace
}  // namespace tensorpool::detail
