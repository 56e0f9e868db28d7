#include "blocks/kept_large_blocks.hpp"

#include <gtest/gtest.h>

#include <array>

#include "blocks/pool_parts.hpp"
#include "blocks/take_back.hpp"

namespace tensorpool::blocks {
namespace {

using pages::Span;
using testing::PoolParts;

constexpr std::size_t mib = std::size_t{1} << 20;

class LargeMagazineTest : public ::testing::Test {
protected:
    Span& span(unsigned number, pages::PageCount pages) {
        spans_[number].pages = pages;
        return spans_[number];
    }

    LargeMagazine magazine_;

private:
    std::array<Span, LargeMagazine::max_blocks> spans_;
};

TEST_F(LargeMagazineTest, TakesTheLastBlockOfTheRequestedSize) {
    magazine_.put(span(0, 20));
    magazine_.put(span(1, 30));
    magazine_.put(span(2, 20));
    EXPECT_EQ(magazine_.take(18), nullptr);
    EXPECT_EQ(magazine_.take(25), nullptr);
    EXPECT_EQ(magazine_.take(20), &span(2, 20));
    EXPECT_EQ(magazine_.take(20), &span(0, 20));
    EXPECT_EQ(magazine_.take(20), nullptr);
    EXPECT_EQ(magazine_.take(30), &span(1, 30));
    EXPECT_TRUE(magazine_.empty());
}

TEST_F(LargeMagazineTest, ServesExactlyTheRequestsRoundedToItsSizes) {
    for (pages::PageCount pages = 17; pages <= 2048; ++pages) {
        const pages::PageCount rounded = pages::round_large(pages);
        magazine_.put(span(0, rounded));
        EXPECT_EQ(magazine_.take(rounded + 1), nullptr) << pages;
        EXPECT_EQ(magazine_.take(rounded - pages::large_step(rounded)), nullptr) << pages;
        ASSERT_EQ(magazine_.take(pages), &span(0, rounded)) << pages;
    }
}

TEST_F(LargeMagazineTest, PutAtOnceAcceptsBlocksWithinItsRoom) {
    magazine_.room = 60 * pages::page_bytes;
    EXPECT_TRUE(magazine_.put_at_once(span(0, 20)));
    EXPECT_TRUE(magazine_.put_at_once(span(1, 30)));
    EXPECT_EQ(magazine_.take(20), &span(0, 20));
    EXPECT_TRUE(magazine_.put_at_once(span(2, 30))) << "at the same position as before";
    EXPECT_EQ(magazine_.bytes(), 60 * pages::page_bytes);
    EXPECT_EQ(magazine_.take(30), &span(2, 30));
    magazine_.room = 59 * pages::page_bytes;
    EXPECT_FALSE(magazine_.put_at_once(span(2, 30))) << "no room";
    EXPECT_EQ(magazine_.take(30), &span(1, 30));
}

TEST_F(LargeMagazineTest, PutAtOnceAcceptsOnlyRoundedSizesUpTo8Mib) {
    magazine_.room = 100 * LargeMagazine::max_bytes;
    EXPECT_TRUE(magazine_.put_at_once(span(0, 2048)));
    EXPECT_FALSE(magazine_.put_at_once(span(1, 2048 + 64)));
    EXPECT_FALSE(magazine_.put_at_once(span(1, 2047)));
    EXPECT_EQ(magazine_.bytes(), LargeMagazine::max_bytes);
}

TEST_F(LargeMagazineTest, CountsTheBytesOfItsBlocks) {
    magazine_.put(span(0, 20));
    magazine_.put(span(1, 30));
    EXPECT_EQ(magazine_.bytes(), 50 * pages::page_bytes);
    magazine_.take(20);
    EXPECT_EQ(magazine_.bytes(), 30 * pages::page_bytes);
    magazine_.take_oldest();
    EXPECT_EQ(magazine_.bytes(), 0U);
}

TEST_F(LargeMagazineTest, TakesTheOldestFirst) {
    for (unsigned number = 0; number != 5; ++number) magazine_.put(span(number, 20 + 2 * number));
    EXPECT_EQ(&magazine_.take_oldest(), &span(0, 20));
    EXPECT_EQ(magazine_.take(24), &span(2, 24));
    EXPECT_EQ(&magazine_.oldest(), &span(1, 22));
    EXPECT_EQ(&magazine_.take_oldest(), &span(1, 22));
    EXPECT_EQ(&magazine_.take_oldest(), &span(3, 26));
}

TEST_F(LargeMagazineTest, IsFullAtItsMaximum) {
    for (unsigned number = 0; number != LargeMagazine::max_blocks; ++number) {
        EXPECT_FALSE(magazine_.is_full());
        magazine_.put(span(number, 17));
    }
    EXPECT_TRUE(magazine_.is_full());
    magazine_.take(17);
    EXPECT_FALSE(magazine_.is_full());
}

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
