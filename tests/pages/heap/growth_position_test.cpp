#include "pages/heap/extents.hpp"

#include <gtest/gtest.h>

namespace tensorpool::pages {
namespace {

constexpr unsigned pool = 2101;

class GrowthPositionTest : public ::testing::Test {
protected:
    ~GrowthPositionTest() override { space_.take_back(pool, lent_); }

    Span& add(PageNumber first, PageCount pages, PageKind kind) {
        Span& made = *extents.records().make();
        made.first_page = at(first);
        made.pages = pages;
        extents.add(made, kind);
        return made;
    }
    PageNumber at(PageNumber page) const { return lent_.first + page; }

private:
    AddressSpace& space_ = address_space();
    const PageRun lent_ = space_.lend(pool, 4 * granule_pages, 4 * granule_pages);

protected:
    Extents extents{space_, pool, 0};
};

TEST_F(GrowthPositionTest, IsBesideAHotExtentThatReducesThePages) {
    add(0, 100, PageKind::extent_cold);
    add(200, 60, PageKind::extent_hot);
    Span& beside = add(260, 200, PageKind::extent_cold);
    const GrowthPosition position = cheapest_position(extents, {.pages = 90});
    EXPECT_EQ(position.cold, &beside);
    EXPECT_EQ(position.first, at(260));
    EXPECT_EQ(position.pages, 30U);
}

TEST_F(GrowthPositionTest, MayLieBetweenTwoHotExtents) {
    add(10, 20, PageKind::extent_hot);
    Span& between = add(30, 5, PageKind::extent_cold);
    add(35, 20, PageKind::extent_hot);
    const GrowthPosition position = cheapest_position(extents, {.pages = 40});
    EXPECT_EQ(position.cold, &between);
    EXPECT_EQ(position.pages, 5U);
}

TEST_F(GrowthPositionTest, KeepsTheAlignment) {
    add(0, granule_pages, PageKind::extent_hot);
    add(granule_pages, 2 * granule_pages, PageKind::extent_cold);
    const GrowthPosition position =
        cheapest_position(extents, {.pages = 600, .alignment = granule_pages});
    EXPECT_EQ(position.first, at(granule_pages));
    EXPECT_EQ(position.pages, 600U - granule_pages);
}

TEST_F(GrowthPositionTest, ThereIsNoneIfNothingFits) {
    EXPECT_EQ(cheapest_position(extents, {.pages = 1}).cold, nullptr);
    add(0, 100, PageKind::extent_cold);
    EXPECT_EQ(cheapest_position(extents, {.pages = 101}).cold, nullptr);
}

TEST_F(GrowthPositionTest, MovedBlockKeepsItsOffsetInAHugePage) {
    Span& cold = add(0, 4 * granule_pages, PageKind::extent_cold);
    const PageCount pages = 300;
    for (const PageNumber first : {0U, 100U, 5 * granule_pages + 37}) {
        const GrowthPosition to = position_for_move(cold, {first, 200}, pages);
        EXPECT_EQ(to.first % granule_pages, first % granule_pages);
        EXPECT_GE(to.first, cold.first_page);
        EXPECT_LE(to.first + pages, cold.end_page());
        EXPECT_EQ(to.run().count, pages);
    }
}

TEST_F(GrowthPositionTest, MovedBlockFitsIntoTheLeastRoom) {
    Span& cold = add(3, room_for_move(300), PageKind::extent_cold);
    const GrowthPosition to = position_for_move(cold, {2, 200}, 300);
    EXPECT_EQ(to.first % granule_pages, 2U);
    EXPECT_LE(to.first + 300, cold.end_page());
}

}  // namespace
}  // namespace tensorpool::pages
