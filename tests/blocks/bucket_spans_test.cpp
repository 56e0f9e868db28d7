#include "blocks/bucket_spans.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "blocks/is_mapped.hpp"
#include "blocks/pool_parts.hpp"
#include "blocks/some_buckets.hpp"

namespace tensorpool::blocks {
namespace {

using testing::is_mapped;
using testing::PoolParts;

constexpr unsigned bucket_64 = 0;
constexpr unsigned bucket_128 = 1;
constexpr unsigned bucket_4k = 6;
constexpr unsigned bucket_64k = 10;

char* bytes_of(void* block) {
    return static_cast<char*>(block);
}

std::size_t span_bytes(unsigned bucket) {
    return bucket_layouts[bucket].pages * pages::page_bytes;
}

class EveryBucket : public ::testing::TestWithParam<unsigned> {
protected:
    const unsigned bucket_ = GetParam();
    const BucketLayout& layout_ = bucket_layouts[bucket_];
    PoolParts pool_;
};

INSTANTIATE_TEST_SUITE_P(Bucket, EveryBucket, testing::some_buckets());

TEST_P(EveryBucket, TakesBlocksOfASpanInAscendingOrderFromTheEnd) {
    std::vector<void*> blocks = pool_.take(bucket_, layout_.blocks);
    ASSERT_EQ(blocks.size(), layout_.blocks);
    std::reverse(blocks.begin(), blocks.end());
    for (unsigned i = 1; i < layout_.blocks; ++i) {
        EXPECT_EQ(bytes_of(blocks[i]) - bytes_of(blocks[i - 1]),
                  static_cast<std::ptrdiff_t>(layout_.stride));
    }
    EXPECT_EQ(pool_.capacity_of(bucket_), span_bytes(bucket_));
}

TEST_P(EveryBucket, BlocksOfManySpansNeverOverlap) {
    std::vector<void*> blocks = pool_.take(bucket_, 3 * layout_.blocks + 1);
    std::sort(blocks.begin(), blocks.end());
    ASSERT_EQ(blocks.size(), 3 * layout_.blocks + 1);
    for (std::size_t i = 1; i < blocks.size(); ++i) {
        ASSERT_GE(bytes_of(blocks[i]) - bytes_of(blocks[i - 1]),
                  static_cast<std::ptrdiff_t>(detail::bucket_bytes(bucket_)));
    }
    EXPECT_EQ(pool_.capacity_of(bucket_), 4 * span_bytes(bucket_));
}

TEST_P(EveryBucket, WholeLastBlockOfASpanCanBeWritten) {
    for (void* const block : pool_.take(bucket_, layout_.blocks)) {
        std::memset(block, 0xFF, detail::bucket_bytes(bucket_));
    }
}

TEST_P(EveryBucket, FreeBlocksAreTakenBeforeUncarvedOnes) {
    const std::vector<void*> blocks = pool_.take(bucket_, 5);
    pool_.bring_home(bucket_, {blocks[1], blocks[3]});
    const std::vector<void*> again = pool_.take(bucket_, 2);
    EXPECT_EQ(std::set(again.begin(), again.end()), (std::set<void*>{blocks[1], blocks[3]}));
    const std::vector<void*> fresh = pool_.take(bucket_, 1);
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), fresh[0]), 0);
}

TEST_P(EveryBucket, FreeBlocksOfACarvedSpanAreTakenOneByOne) {
    const std::vector<void*> blocks = pool_.take(bucket_, layout_.blocks);
    pool_.bring_home(bucket_, {blocks[0], blocks[2], blocks[5]});
    std::set<void*> again;
    for (unsigned i = 0; i < 3; ++i) again.insert(pool_.take(bucket_, 1)[0]);
    EXPECT_EQ(again, (std::set<void*>{blocks[0], blocks[2], blocks[5]}));
    EXPECT_EQ(pool_.capacity_of(bucket_), span_bytes(bucket_));
}

TEST_P(EveryBucket, NoBlockIsTakenTwice) {
    std::set<void*> out;
    for (unsigned round = 0; round < 40; ++round) {
        for (void* const block : pool_.take(bucket_, layout_.blocks / 3 + 1)) {
            ASSERT_TRUE(out.insert(block).second) << "round " << round;
        }
        std::vector<void*> back;
        unsigned at = 0;
        for (void* const block : out) {
            if (at++ % 3 == round % 3) back.push_back(block);
        }
        for (void* const block : back) out.erase(block);
        pool_.bring_home(bucket_, back);
    }
    pool_.bring_home(bucket_, {out.begin(), out.end()});
    EXPECT_EQ(pool_.capacity_of(bucket_), 0U);
}

TEST_P(EveryBucket, EntirelyFreeSpanReturnsToThePageHeap) {
    std::vector<void*> blocks = pool_.take(bucket_, layout_.blocks + 1);
    void* const last = blocks.back();
    blocks.pop_back();
    pool_.bring_home(bucket_, blocks);
    // All blocks of the first span but `last`, its lowest, are free. The other span was freed.
    EXPECT_EQ(pool_.capacity_of(bucket_), span_bytes(bucket_));
    pool_.bring_home(bucket_, {last});
    EXPECT_EQ(pool_.capacity_of(bucket_), 0U);
    EXPECT_EQ(pool_.totals.free_bytes, pool_.heap.capacity().bytes());
}

TEST_P(EveryBucket, CountsTheFreeBytesOfSpansThatTakeNoMemory) {
    const auto untouched = [&] { return std::size_t{pool_.totals.untouched_span_bytes}; };
    const std::vector<void*> blocks = pool_.take(bucket_, 1);
    // Pages of the system that the span shares with others do not count.
    EXPECT_LE(untouched(), span_bytes(bucket_) - layout_.stride);
    EXPECT_GE(untouched() + 3 * platform::page_bytes(), span_bytes(bucket_) - layout_.stride);
    const std::vector<void*> rest = pool_.take(bucket_, layout_.blocks - 1);
    EXPECT_LT(untouched(), layout_.stride);
    pool_.bring_home(bucket_, rest);
    EXPECT_LT(untouched(), layout_.stride);
    pool_.set.drop_free_pages();
    const std::size_t in_whole_pages = untouched();
    EXPECT_LE(in_whole_pages, span_bytes(bucket_) - layout_.stride);
    EXPECT_GE(in_whole_pages + 2 * platform::page_bytes(), span_bytes(bucket_) - layout_.stride);
    pool_.bring_home(bucket_, blocks);
    EXPECT_EQ(untouched(), 0U);
}

TEST_P(EveryBucket, CountsTheFreePagesOfSpansThatTrimReturns) {
    const auto trimmable = [&] { return std::size_t{pool_.totals.trimmable_span_bytes}; };
    const auto untouched = [&] { return std::size_t{pool_.totals.untouched_span_bytes}; };
    // The rest of the span is cut into blocks later, or never.
    std::vector<void*> blocks = pool_.take(bucket_, layout_.blocks * 2 / 3 + 1);
    std::mt19937 random(bucket_);
    for (unsigned i = 0; i != 3 * layout_.blocks; ++i) {
        if (blocks.size() > 1 && i % 3 != 2) {
            std::swap(blocks.back(), blocks[random() % blocks.size()]);
            pool_.bring_home(bucket_, {blocks.back()});
            blocks.pop_back();
        } else if (blocks.size() < layout_.blocks) {
            blocks.push_back(pool_.take(bucket_, 1)[0]);
        }
        const std::size_t promised = untouched() + trimmable();
        if (random() % 2 == 0) {
            pool_.set.drop_free_pages();
            ASSERT_EQ(untouched(), promised) << "after " << i << " steps";
            ASSERT_EQ(trimmable(), 0U);
        }
    }
    pool_.bring_home(bucket_, blocks);
    EXPECT_EQ(untouched() + trimmable(), 0U);
}

TEST_P(EveryBucket, FullestSpanServesFirst) {
    std::vector<void*> blocks = pool_.take(bucket_, 3 * layout_.blocks);
    std::sort(blocks.begin(), blocks.end());
    const unsigned half = layout_.blocks / 2;
    // Returns half, two and half of the blocks of the three spans.
    const auto part = [&](unsigned span, unsigned count) {
        const auto first = blocks.begin() + span * layout_.blocks;
        return std::vector<void*>(first, first + count);
    };
    const std::vector<void*> of_fullest = part(1, 2);
    pool_.bring_home(bucket_, part(0, half));
    pool_.bring_home(bucket_, of_fullest);
    pool_.bring_home(bucket_, part(2, half));
    const std::vector<void*> again = pool_.take(bucket_, 2);
    EXPECT_EQ(std::set(again.begin(), again.end()), std::set(of_fullest.begin(), of_fullest.end()));
}

TEST_P(EveryBucket, PartlyCarvedFreeSpanReturnsToThePageHeap) {
    const std::vector<void*> blocks = pool_.take(bucket_, 2);
    pool_.bring_home(bucket_, blocks);
    EXPECT_EQ(pool_.capacity_of(bucket_), 0U);
}

TEST_P(EveryBucket, SpansReturnForBatchesInAnyOrder) {
    std::vector<void*> blocks = pool_.take(bucket_, 3 * layout_.blocks);
    // Every third block first, then the others: neighbours are returned far apart in time.
    std::vector<void*> shuffled;
    for (std::size_t from = 0; from < 3; ++from) {
        for (std::size_t i = from; i < blocks.size(); i += 3) shuffled.push_back(blocks[i]);
    }
    pool_.bring_home(bucket_, shuffled);
    EXPECT_EQ(pool_.capacity_of(bucket_), 0U);
    EXPECT_EQ(pool_.take(bucket_, 3 * layout_.blocks).size(), 3 * layout_.blocks);
}

TEST_P(EveryBucket, TakesASpanOfOneBlockNearALimit) {
    const std::size_t one = base::align_up(layout_.stride, pages::page_bytes);
    PoolParts pool({.max_capacity = one});
    const std::vector<void*> blocks = pool.take(bucket_, 1);
    ASSERT_EQ(blocks.size(), 1U);
    std::memset(blocks[0], 1, detail::bucket_bytes(bucket_));
    EXPECT_EQ(pool.capacity_of(bucket_), one);
    pool.bring_home(bucket_, blocks);
    EXPECT_EQ(pool.capacity_of(bucket_), 0U);
    EXPECT_EQ(pool.take(bucket_, 1).size(), 1U);
}

TEST_P(EveryBucket, TakesTheRestUnderALimitAndReportsTheLimit) {
    const std::size_t limit = 3 * span_bytes(bucket_);
    PoolParts pool({.max_capacity = limit});
    const unsigned max_blocks = 4 * layout_.blocks;
    const std::vector<void*> blocks = pool.take(bucket_, max_blocks);
    EXPECT_GE(blocks.size(), 3 * layout_.blocks);
    EXPECT_LT(blocks.size(), max_blocks);
    PoolParts::path().refusal = {};
    EXPECT_TRUE(pool.take(bucket_, 1).empty());
    EXPECT_STREQ(PoolParts::path().refusal.limit, "max_capacity");
    EXPECT_EQ(PoolParts::path().refusal.limit_bytes, limit);
    // Returned blocks are available again.
    pool.bring_home(bucket_, {blocks.front()});
    EXPECT_EQ(pool.take(bucket_, 1), std::vector<void*>{blocks.front()});
}

TEST(BucketSpans, TakesNothingIfASpanOfOneBlockExceedsTheLimit) {
    PoolParts pool({.max_capacity = 16 * pages::page_bytes});
    EXPECT_TRUE(pool.take(bucket_64k, 1).empty());
    EXPECT_EQ(pool.capacity_of(bucket_64k), 0U);
}

TEST(BucketSpans, FreedMemoryOfOneBucketServesAnother) {
    PoolParts pool({.max_capacity = span_bytes(bucket_64k)});
    const std::vector<void*> small = pool.take(bucket_64, 100'000);
    ASSERT_TRUE(pool.take(bucket_64k, 1).empty());
    pool.bring_home(bucket_64, small);
    EXPECT_EQ(pool.take(bucket_64k, 1).size(), 1U);
}

// Finding, and how an invalid pointer that is returned ends the process ---------------------------

class BucketFind : public ::testing::Test {
protected:
    BucketSpans::Finding find(unsigned bucket, const void* p) {
        return pool_.set[bucket].spans.find(p);
    }

    PoolParts pool_;
};

TEST_F(BucketFind, FindsTheBeginningFromEveryByteOfACarvedBlock) {
    for (const unsigned bucket : {bucket_128, bucket_4k}) {
        const std::size_t bytes = detail::bucket_bytes(bucket);
        for (void* const block : pool_.take(bucket, 3)) {
            for (const std::size_t offset :
                 {std::size_t{0}, std::size_t{1}, bytes / 2, bytes - 1}) {
                const BucketSpans::Finding found = find(bucket, bytes_of(block) + offset);
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
                found += pool.set[bucket_4k].spans.find(block).in_span ? 1 : 0;
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
