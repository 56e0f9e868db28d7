#include "pages/heap/extents.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "pages/random.hpp"

namespace tensorpool::pages {
namespace {

/// Bins with the extents that a test puts into them, at increasing addresses with gaps in between.
class Bins {
public:
    Span& add(PageCount pages) { return add_at(next_, pages); }
    Span& add_at(PageNumber first, PageCount pages) {
        Span& extent = extents_.emplace_back();
        extent.first_page = first;
        extent.pages = pages;
        next_ = first + pages + 1;
        bins.insert(extent);
        return extent;
    }

    ExtentBins bins;

private:
    std::deque<Span> extents_;
    PageNumber next_ = 0;
};

TEST(ExtentBins, EmptyBinsFindNothing) {
    ExtentBins bins;
    EXPECT_EQ(bins.find(1, 1), nullptr);
    EXPECT_EQ(bins.largest(), nullptr);
    EXPECT_EQ(bins.total_pages(), 0U);
    bins.for_each([](Span&) { FAIL(); });
}

TEST(ExtentBins, FindAnExtentOfEverySizeFromOnePageToTheLargest) {
    for (std::uint64_t pages = 1; pages < std::uint64_t{1} << 32; pages = pages * 9 / 8 + 1) {
        Bins some;
        Span& extent = some.add_at(0, static_cast<PageCount>(pages));
        EXPECT_EQ(some.bins.find(1, 1), &extent);
        EXPECT_EQ(some.bins.find(extent.pages, 1), &extent) << pages;
        EXPECT_EQ(some.bins.find(extent.pages + 1, 1), nullptr) << pages;
        EXPECT_EQ(some.bins.largest(), &extent);
        some.bins.remove(extent);
        EXPECT_EQ(some.bins.find(1, 1), nullptr);
        EXPECT_EQ(some.bins.total_pages(), 0U);
    }
}

TEST(ExtentBins, VisitTheLargestFirstUpToTheCount) {
    Bins some;
    for (const PageCount pages : {3U, 900U, 70U, 901U}) some.add(pages);
    std::vector<PageCount> shown;
    some.bins.for_the_largest(3, [&](const Span& extent) { shown.push_back(extent.pages); });
    EXPECT_EQ(shown, (std::vector<PageCount>{901, 900, 70}));
}

TEST(ExtentBins, ListTheLowestFromAnAddressInOrder) {
    Bins some;
    const std::vector<PageNumber> firsts = {50, 900, 10, 700, 300, 500};
    for (const PageNumber first : firsts) some.add_at(first, first % 9 + 1);
    std::array<PageRun, 2> room;
    const std::span<const PageRun> found = some.bins.lowest_from(51, room);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].first, 300U);
    EXPECT_EQ(found[0].count, 300 % 9 + 1U);
    EXPECT_EQ(found[1].first, 500U);
    EXPECT_EQ(some.bins.lowest_from(900, room).size(), 1U);
    EXPECT_TRUE(some.bins.lowest_from(901, room).empty());
}

TEST(ExtentBins, LargestPossibleRequestFindsNothing) {
    Bins some;
    some.add(100);
    EXPECT_EQ(some.bins.find(~PageCount{0}, 1), nullptr);
}

TEST(ExtentBins, SmallestFittingExtentIsFound) {
    Bins some;
    some.add(1000);
    Span& best = some.add(24);
    some.add(22);
    some.add(200);
    EXPECT_EQ(some.bins.find(23, 1), &best);
    EXPECT_EQ(some.bins.find(24, 1), &best);
}

TEST(ExtentBins, SmallestOfAFewOfTheSameBinIsFound) {
    Bins some;
    some.add(75);
    Span& best = some.add(73);
    some.add(78);
    EXPECT_EQ(some.bins.find(72, 1), &best);
}

// A fitting extent is found among any number of extents that do not fit.
TEST(ExtentBins, FittingExtentIsFoundAmongManyTooSmallOnesOfItsBin) {
    Bins some;
    Span& fitting = some.add(79);
    for (int i = 0; i < 100; ++i) some.add(72);
    EXPECT_EQ(some.bins.find(79, 1), &fitting);
}

TEST(ExtentBins, ManyExtentsThatAreNotAlignedAreNotAllLookedAt) {
    Bins some;
    Span& hidden = some.add_at(2, 1);  // behind the others in its list
    for (PageNumber first = 5; first != 20'005; first += 4) some.add_at(first, 1);
    Span& larger = some.add_at(50'000, 3);
    EXPECT_EQ(some.bins.find(1, 2), &larger);
    some.bins.remove(larger);
    EXPECT_EQ(some.bins.find(1, 2), &hidden) << "nothing else fits";
    some.bins.remove(hidden);
    EXPECT_EQ(some.bins.find(1, 2), nullptr);
}

TEST(ExtentBins, ManyLargeExtentsThatAreNotAlignedAreNotAllLookedAt) {
    Bins some;
    Span& hidden = some.add_at(512, 300);
    for (PageNumber first = 1025; first < 2'000'000; first += 1024) some.add_at(first, 300);
    Span& larger = some.add_at(4'000'000, 1024);
    EXPECT_EQ(some.bins.find_lowest(300, 512), &larger);
    some.bins.remove(larger);
    EXPECT_EQ(some.bins.find_lowest(300, 512), &hidden) << "nothing else fits";
}

TEST(ExtentBins, AlignedRequestsSkipExtentsWhoseAlignedPartIsTooSmall) {
    Bins some;
    some.add_at(1, 70);
    EXPECT_EQ(some.bins.find(32, 64), nullptr);
    Span& fitting = some.add_at(100, 70);  // 128 to 170
    EXPECT_EQ(some.bins.find(32, 64), &fitting);
    EXPECT_EQ(some.bins.find(42, 64), &fitting);
    EXPECT_EQ(some.bins.find(43, 64), nullptr);
    EXPECT_EQ(ExtentBins::position_in(fitting, 42, 64), 128U);
    EXPECT_EQ(ExtentBins::position_in(fitting, 43, 64), fitting.end_page());
}

TEST(ExtentBins, PositionIsNeverBeyondTheEndOfTheExtent) {
    Span extent;
    extent.first_page = (PageNumber{1} << 28) - 10;
    extent.pages = 10;
    EXPECT_EQ(ExtentBins::position_in(extent, 1, PageCount{1} << 31), extent.end_page());
    EXPECT_EQ(ExtentBins::position_in(extent, ~PageCount{0}, 1), extent.end_page());
    EXPECT_EQ(ExtentBins::position_in(extent, 10, 1), extent.first_page);
}

TEST(ExtentBins, FindLowestReturnsTheLowestFittingExtent) {
    Bins some;
    some.add(20);
    Span& low = some.add(50);
    some.add(30);
    Span& high = some.add(31);
    EXPECT_EQ(some.bins.find_lowest(25, 1), &low) << "not the best fit";
    some.bins.remove(low);
    EXPECT_EQ(some.bins.find_lowest(31, 1), &high);
    EXPECT_EQ(some.bins.find_lowest(32, 1), nullptr);
    EXPECT_EQ(ExtentBins().find_lowest(1, 1), nullptr);
}

TEST(ExtentBins, LowestSkipsExtentsWhoseAlignedPartIsTooSmall) {
    Bins some;
    some.add_at(10, 30);
    Span& fits = some.add_at(64, 30);
    EXPECT_EQ(some.bins.find_lowest(20, 32), &fits);
    EXPECT_EQ(some.bins.find_lowest(30, 64), &fits);
    EXPECT_EQ(some.bins.find_lowest(31, 64), nullptr);
}

TEST(ExtentBins, FindLowestReturnsOneOfVeryManyFittingExtents) {
    Bins some;
    for (int i = 0; i < 1000; ++i) some.add(200);
    EXPECT_NE(some.bins.find_lowest(150, 1), nullptr);
}

TEST(ExtentBins, AgreeWithAListForRandomExtents) {
    testing::Random random(314159);
    std::deque<Span> extents(300);
    std::vector<Span*> out;
    for (Span& extent : extents) out.push_back(&extent);
    std::vector<Span*> in;
    ExtentBins bins;
    std::size_t pages = 0;
    for (unsigned step = 0; step < 20'000; ++step) {
        const bool insert = !out.empty() && (in.empty() || random.below(2) == 0);
        std::vector<Span*>& from = insert ? out : in;
        std::swap(from[random.below(from.size())], from.back());
        Span& extent = *from.back();
        from.pop_back();
        if (insert) {
            extent.first_page = random.below(100'000);
            extent.pages = 1 + random.below(PageCount{1} << random.below(14));
            bins.insert(extent);
            in.push_back(&extent);
            pages += extent.pages;
        } else {
            bins.remove(extent);
            out.push_back(&extent);
            pages -= extent.pages;
        }
        ASSERT_EQ(bins.total_pages(), pages);

        const PageCount wanted = 1 + random.below(PageCount{1} << random.below(14));
        const PageCount alignment = PageCount{1} << random.below(8);
        PageCount smallest = 0;
        PageCount largest = 0;
        for (const Span* const one : in) {
            largest = std::max(largest, one->pages);
            if (ExtentBins::position_in(*one, wanted, alignment) == one->end_page()) continue;
            smallest = smallest == 0 ? one->pages : std::min(smallest, one->pages);
        }
        const Span* const found = bins.find(wanted, alignment);
        ASSERT_EQ(found != nullptr, smallest != 0);
        if (found != nullptr) {
            ASSERT_NE(ExtentBins::position_in(*found, wanted, alignment), found->end_page());
            ASSERT_LE(found->pages, smallest + smallest / 8 + 1) << "worse by more than a bin";
        }
        const Span* const lowest = bins.find_lowest(wanted, alignment);
        ASSERT_EQ(lowest != nullptr, smallest != 0);
        if (lowest != nullptr) {
            ASSERT_NE(ExtentBins::position_in(*lowest, wanted, alignment), lowest->end_page());
        }
        ASSERT_EQ(bins.largest() != nullptr, largest != 0);
        if (largest != 0) {
            ASSERT_GE(bins.largest()->pages + largest / 8, largest);
        }
    }
}

TEST(ExtentBins, ForEachVisitsEveryExtentOnce) {
    Bins some;
    std::size_t pages = 0;
    for (PageCount size = 1; size < 5000; size = size * 3 / 2 + 1) pages += some.add(size).pages;
    std::size_t seen = 0;
    some.bins.for_each([&](Span& extent) { seen += extent.pages; });
    EXPECT_EQ(seen, pages);
    EXPECT_EQ(some.bins.total_pages(), pages);
}

}  // namespace
}  // namespace tensorpool::pages
