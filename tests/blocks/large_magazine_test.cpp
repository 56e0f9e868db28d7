#include "blocks/kept_large_blocks.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tensorpool::blocks {
namespace {

using pages::Span;

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

}  // namespace
}  // namespace tensorpool::blocks
