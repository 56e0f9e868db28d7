#include "blocks/kept_large_blocks.hpp"

#include <gtest/gtest.h>

#include "blocks/pool_parts.hpp"
#include "blocks/take_back.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

constexpr std::size_t mib = std::size_t{1} << 20;

class KeptLargeBlocksTest : public ::testing::Test {
protected:
    void SetUp() override {
        if (!can_take_back()) GTEST_SKIP() << "no fences of all threads";
        kept_.begin(pool_.set, pool_.counters.take()->counters->large);
    }
    pages::Span& span(std::size_t bytes) {
        return *pool_.large.allocate(bytes, 64, PoolParts::path()).span;
    }

    PoolParts pool_;
    KeptLargeBlocks kept_;
};

TEST_F(KeptLargeBlocksTest, KeepsBlocksUpTo8MibInTurn) {
    for (const std::size_t bytes : {8 * mib, mib}) {
        pages::Span* block = &span(bytes);
        for (int i = 0; i < 3; ++i) {
            ASSERT_TRUE(kept_.keep(*block, pool_.large)) << bytes;
            block = kept_.take(block->pages, pool_.large);
            ASSERT_NE(block, nullptr);
        }
        pool_.large.free(*block, PoolParts::path());
    }
    pages::Span& larger = span(8 * mib + 1);
    EXPECT_FALSE(kept_.keep(larger, pool_.large));
    pool_.large.free(larger, PoolParts::path());
}

TEST_F(KeptLargeBlocksTest, KeepsAtOnceWithinTheRoomThatItHas) {
    pages::Span* const block = &span(mib);
    EXPECT_FALSE(kept_.keep_at_once(*block, pool_.large)) << "there is no room yet";
    ASSERT_TRUE(kept_.keep(*block, pool_.large));
    EXPECT_EQ(kept_.room_bytes(), block->bytes());
    ASSERT_EQ(kept_.take_at_once(block->pages, pool_.large), block);
    EXPECT_TRUE(kept_.keep_at_once(*block, pool_.large));
    EXPECT_EQ(kept_.give_back(PoolParts::path()), mib);
    EXPECT_EQ(kept_.room_bytes(), 0U);
    EXPECT_EQ(pool_.set.shared().large_parking_limit.taken(), 0U);
}

TEST_F(KeptLargeBlocksTest, NothingIsKeptOrTakenAtOnceWhileAnotherThreadClaimsTheBlocks) {
    pages::Span& block = span(mib);
    pages::Span& other = span(mib);
    ASSERT_TRUE(kept_.keep(block, pool_.large));
    ASSERT_TRUE(kept_.keep(other, pool_.large));
    ASSERT_EQ(kept_.take(other.pages, pool_.large), &other);
    kept_.lock.claim();
    EXPECT_EQ(kept_.take_at_once(block.pages, pool_.large), nullptr);
    EXPECT_FALSE(kept_.keep_at_once(other, pool_.large));
    EXPECT_EQ(kept_.empty(PoolParts::path()), mib);
    kept_.lock.end_claim();
    pool_.large.free(other, PoolParts::path());
}

TEST_F(KeptLargeBlocksTest, KeepsThoseThatWereFreedInTheLastPeriod) {
    pages::Span& block = span(mib);
    ASSERT_TRUE(kept_.keep(block, pool_.large));
    block.period = pool_.heap.kept().period() - 1;
    EXPECT_EQ(kept_.give_back_unneeded(PoolParts::path()), 0U);
    EXPECT_EQ(kept_.give_back(PoolParts::path()), mib);
}

}  // namespace
}  // namespace tensorpool::blocks
