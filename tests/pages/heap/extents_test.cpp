#include "pages/heap/extents.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorpool::pages {
namespace {

constexpr unsigned pool = 2100;

/// The extents of a shard that borrowed three granules, and spans that a test adds to them.
class ExtentsTest : public ::testing::Test {
protected:
    ~ExtentsTest() override { space_.take_back(pool, lent_); }

    /// Makes a run of pages, counted from the first one lent, that is in no list.
    Span& run(PageNumber first, PageCount pages) {
        Span& made = *extents.records().make();
        made.first_page = at(first);
        made.pages = pages;
        return made;
    }
    Span& add(PageNumber first, PageCount pages, PageKind kind = PageKind::extent_hot) {
        Span& made = run(first, pages);
        extents.add(made, kind);
        return made;
    }
    PageNumber at(PageNumber page) const { return lent_.first + page; }
    Span* hot_at(PageNumber page) const { return extents.find(at(page), PageKind::extent_hot); }
    Span* cold_at(PageNumber page) const { return extents.find(at(page), PageKind::extent_cold); }
    PageEntry entry(PageNumber page) const { return space_.map().at(at(page)); }

private:
    AddressSpace& space_ = address_space();
    const PageRun lent_ = space_.lend(pool, 3 * granule_pages, 3 * granule_pages);

protected:
    Extents extents{space_, pool, 0};
};

TEST_F(ExtentsTest, NeighboursOfOneKindJoin) {
    add(10, 5);
    add(20, 3);
    Span& middle = add(15, 5);
    EXPECT_EQ(hot_at(10), &middle);
    EXPECT_EQ(hot_at(22), &middle);
    EXPECT_EQ(middle.pages, 13U);
    EXPECT_EQ(extents.hot().total_pages(), 13U);
}

TEST_F(ExtentsTest, HotAndColdExtentsDoNotJoin) {
    Span& hot = add(10, 5);
    Span& cold = add(15, 5, PageKind::extent_cold);
    EXPECT_EQ(hot_at(14), &hot);
    EXPECT_EQ(cold_at(15), &cold);
    EXPECT_EQ(hot_at(15), nullptr);
}

TEST_F(ExtentsTest, ExtentsOfAnotherShardAreNotFound) {
    add(10, 5);
    const Extents other(address_space(), pool, 1);
    EXPECT_EQ(other.find(at(10), PageKind::extent_hot), nullptr);
}

TEST_F(ExtentsTest, IsolatedRunLeavesTheRestOfItsKind) {
    Span& extent = add(10, 20, PageKind::extent_cold);
    extent.clean = true;
    ASSERT_TRUE(extents.isolate(extent, {at(15), 5}));
    EXPECT_EQ(extent.first_page, at(15));
    EXPECT_EQ(extent.pages, 5U);
    EXPECT_TRUE(entry(15).empty());
    EXPECT_EQ(cold_at(10)->pages, 5U);
    EXPECT_EQ(cold_at(20)->pages, 10U);
    EXPECT_TRUE(cold_at(20)->clean);
    extents.add(extent, PageKind::extent_cold);
    EXPECT_EQ(cold_at(10)->pages, 20U);
}

TEST_F(ExtentsTest, EachPartHasItsShareOfUntouchedPages) {
    Span& extent = run(0, 30);
    extent.set_untouched_end(12);
    extents.add(extent, PageKind::extent_hot);
    EXPECT_EQ(extents.untouched_pages(), 12U);
    ASSERT_TRUE(extents.isolate(extent, {at(10), 10}));
    EXPECT_EQ(hot_at(0)->untouched_end(), 0U);
    EXPECT_EQ(extent.untouched_end(), 2U);
    EXPECT_EQ(hot_at(20)->untouched_end(), 10U);
    EXPECT_EQ(extents.untouched_pages(), 10U);
    extents.add(extent, PageKind::extent_hot);
    EXPECT_EQ(extents.untouched_pages(), 12U);
}

TEST_F(ExtentsTest, TouchedFrontOfAColdExtentHasNoUntouchedPages) {
    Span& extent = run(0, 30);
    extent.set_untouched_end(10);
    extents.add(extent, PageKind::extent_cold);
    ASSERT_TRUE(extents.isolate(extent, {at(0), 4}));
    extents.add(extent, PageKind::extent_hot);
    EXPECT_EQ(extents.untouched_pages(), 0U);
}

TEST_F(ExtentsTest, TouchedExtentsHaveNoUntouchedPages) {
    Span& extent = run(0, 30);
    extent.clean = true;
    extents.add(extent, PageKind::extent_hot);
    EXPECT_EQ(extents.untouched_pages(), 30U);
    extents.note_touched();
    EXPECT_EQ(extents.untouched_pages(), 0U);
    EXPECT_TRUE(extent.clean) << "its pages read as zeros";
}

TEST_F(ExtentsTest, SpanInUseHasTheEntriesOfItsKind) {
    Span& span = run(10, 5);
    extents.mark_in_use(span, kind_of_bucket(3));
    for (PageNumber page = 10; page != 15; ++page) EXPECT_EQ(entry(page).span(), &span) << page;
    extents.clear_entries(span);
    for (PageNumber page = 10; page != 15; ++page) EXPECT_TRUE(entry(page).empty()) << page;
    extents.mark_in_use(span, PageKind::large_in_use);
    EXPECT_EQ(entry(10).span(), &span);
    EXPECT_TRUE(entry(12).empty());
    EXPECT_EQ(entry(14).span(), &span);
}

TEST_F(ExtentsTest, LongerSpanTakesTheFrontOfTheExtentBehind) {
    Span& span = run(10, 5);
    extents.mark_in_use(span, PageKind::large_in_use);
    Span& behind = add(15, 8);
    extents.lengthen(span, behind, 3);
    EXPECT_EQ(span.pages, 8U);
    EXPECT_EQ(entry(17).span(), &span);
    EXPECT_EQ(hot_at(18)->pages, 5U);
    extents.lengthen(span, *hot_at(18), 5);
    EXPECT_EQ(span.pages, 13U);
    EXPECT_EQ(extents.hot().total_pages(), 0U);
}

TEST_F(ExtentsTest, EndOfAShorterSpanJoinsTheExtentBehind) {
    Span& span = run(10, 8);
    extents.mark_in_use(span, PageKind::large_in_use);
    add(18, 4);
    ASSERT_TRUE(extents.shorten(span, 5));
    EXPECT_EQ(span.pages, 5U);
    EXPECT_EQ(entry(14).span(), &span);
    EXPECT_EQ(hot_at(15)->pages, 7U);
    EXPECT_EQ(entry(17).span(), nullptr);
    EXPECT_EQ(extents.hot().total_pages(), 7U);
}

TEST_F(ExtentsTest, OnlyWholeColdGranulesAreIsolated) {
    add(0, 100, PageKind::extent_cold);
    add(granule_pages - 10, granule_pages + 20, PageKind::extent_cold);
    add(2 * granule_pages + 100, 50);
    SpanList isolated;
    EXPECT_EQ(extents.isolate_cold_granules(isolated), granule_pages);
    ASSERT_FALSE(isolated.empty());
    EXPECT_EQ(isolated.front().first_page, at(granule_pages));
    EXPECT_EQ(cold_at(granule_pages - 1)->pages, 10U);
    EXPECT_EQ(cold_at(2 * granule_pages)->pages, 10U);
}

TEST_F(ExtentsTest, LargeRunsComeFromTheLowestAddress) {
    Span& low = add(0, 400);
    Span& fitting = add(granule_pages, 200);
    EXPECT_EQ(extents.find_hot(200, 1), &low);
    EXPECT_EQ(extents.find_hot(100, 1), &fitting) << "a small run: the best fit";
}

}  // namespace
}  // namespace tensorpool::pages
