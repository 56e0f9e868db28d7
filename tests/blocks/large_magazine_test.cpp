#include "blocks/large_magazine.hpp"

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
    std::array<Span, LargeMagazine::most_blocks> spans_;
};

TEST_F(LargeMagazineTest, GivesTheLastOfJustSoManyPages) {
    magazine_.put(span(0, 20));
    magazine_.put(span(1, 30));
    magazine_.put(span(2, 20));
    EXPECT_EQ(magazine_.take(25), nullptr);
    EXPECT_EQ(magazine_.take(20), &span(2, 20));
    EXPECT_EQ(magazine_.take(20), &span(0, 20));
    EXPECT_EQ(magazine_.take(20), nullptr);
    EXPECT_EQ(magazine_.take(30), &span(1, 30));
    EXPECT_TRUE(magazine_.empty());
}

TEST_F(LargeMagazineTest, CountsWhatItHolds) {
    magazine_.put(span(0, 20));
    magazine_.put(span(1, 30));
    EXPECT_EQ(magazine_.bytes(), 50 * pages::page_bytes);
    magazine_.take(20);
    EXPECT_EQ(magazine_.bytes(), 30 * pages::page_bytes);
    magazine_.take_oldest();
    EXPECT_EQ(magazine_.bytes(), 0U);
}

TEST_F(LargeMagazineTest, OldestGoesFirst) {
    for (unsigned number = 0; number != 5; ++number) magazine_.put(span(number, 20 + number));
    EXPECT_EQ(&magazine_.take_oldest(), &span(0, 20));
    EXPECT_EQ(magazine_.take(22), &span(2, 22));
    EXPECT_EQ(&magazine_.oldest(), &span(1, 21));
    EXPECT_EQ(&magazine_.take_oldest(), &span(1, 21));
    EXPECT_EQ(&magazine_.take_oldest(), &span(3, 23));
}

TEST_F(LargeMagazineTest, IsFullWithItsMostBlocks) {
    for (unsigned number = 0; number != LargeMagazine::most_blocks; ++number) {
        EXPECT_FALSE(magazine_.is_full());
        magazine_.put(span(number, 17));
    }
    EXPECT_TRUE(magazine_.is_full());
    magazine_.take(17);
    EXPECT_FALSE(magazine_.is_full());
}

}  // namespace
}  // namespace tensorpool::blocks
