#include "models/mapping.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace tensorpool::files {
namespace {

std::vector<PageRange> missing(const PageRanges& ranges, PageRange range) {
    std::vector<PageRange> result;
    ranges.for_each_missing(range, [&](PageRange each) { result.push_back(each); });
    return result;
}

PageRanges made_of(const std::vector<PageRange>& ranges) {
    PageRanges result;
    result.reserve_more(ranges.size());
    for (const PageRange& range : ranges) result.add(range);
    return result;
}

using Ranges = std::vector<PageRange>;

TEST(PageRanges, EmptySetMissesEverything) {
    EXPECT_EQ(missing({}, {2, 5}), (Ranges{{2, 5}}));
    EXPECT_EQ(missing({}, {2, 2}), Ranges{});
    EXPECT_EQ(PageRanges().bytes(), 0U);
}

TEST(PageRanges, MissesGapsAndMargins) {
    const PageRanges ranges = made_of({{2, 4}, {6, 8}});
    EXPECT_EQ(missing(ranges, {0, 10}), (Ranges{{0, 2}, {4, 6}, {8, 10}}));
    EXPECT_EQ(missing(ranges, {3, 7}), (Ranges{{4, 6}}));
    EXPECT_EQ(missing(ranges, {2, 4}), Ranges{});
    EXPECT_EQ(missing(ranges, {4, 6}), (Ranges{{4, 6}}));
    EXPECT_EQ(missing(ranges, {9, 12}), (Ranges{{9, 12}}));
}

TEST(PageRanges, JoinsNeighboursOnBothSides) {
    EXPECT_EQ(missing(made_of({{2, 4}, {4, 6}}), {0, 8}), (Ranges{{0, 2}, {6, 8}}));
    EXPECT_EQ(missing(made_of({{4, 6}, {2, 4}}), {0, 8}), (Ranges{{0, 2}, {6, 8}}));
    EXPECT_EQ(missing(made_of({{2, 4}, {6, 8}, {4, 6}}), {0, 9}), (Ranges{{0, 2}, {8, 9}}));
}

TEST(PageRanges, IgnoresEmptyRanges) {
    EXPECT_EQ(missing(made_of({{3, 3}}), {2, 5}), (Ranges{{2, 5}}));
}

// A model of the set: one flag for each page.
TEST(PageRanges, AgreesWithAFlagForEachPage) {
    std::mt19937 random(7);
    std::uniform_int_distribution<std::size_t> position(0, 64);
    for (int round = 0; round < 200; ++round) {
        std::vector<bool> flags(64);
        PageRanges ranges;
        for (int step = 0; step < 12; ++step) {
            const std::size_t begin = position(random);
            const std::size_t end = std::max(begin, position(random));
            const std::vector<PageRange> fresh = missing(ranges, {begin, end});
            std::vector<bool> reported(64);
            for (const PageRange& range : fresh) {
                for (std::size_t page = range.begin; page < range.end; ++page)
                    reported[page] = true;
            }
            ranges.reserve_more(fresh.size());
            for (const PageRange& range : fresh) ranges.add(range);
            std::size_t set = 0;
            for (std::size_t page = 0; page < 64; ++page) {
                const bool is_within = page >= begin && page < end;
                ASSERT_EQ(reported[page], is_within && !flags[page]);
                flags[page] = flags[page] || is_within;
                set += flags[page] ? 1U : 0U;
            }
            ASSERT_EQ(ranges.bytes(), set);
        }
    }
}

}  // namespace
}  // namespace tensorpool::files
