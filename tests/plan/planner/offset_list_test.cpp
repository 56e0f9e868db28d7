#include "plan/planner/portfolio.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/planner/instances.hpp"

namespace {

using planner_tests::draw;
using tensorpool::planner::Buffer;
using tensorpool::planner::Gap;
using tensorpool::planner::OffsetList;
using tensorpool::planner::Placed;

/// In slice 0 there are gaps at [10, 20) and [40, 44), and all is free above 50.
OffsetList small_list() {
    OffsetList list;
    list.add({0, 1, 44, 50, 2});
    list.add({0, 2, 0, 10, 0});
    list.add({0, 1, 20, 40, 1});
    list.add({1, 2, 10, 99, 3});
    return list;
}

TEST(OffsetList, FindsTheLowestGap) {
    EXPECT_EQ(small_list().offset_for({0, 1, 4, 1, 1}, Gap::first), 10U);
    EXPECT_EQ(small_list().offset_for({0, 1, 10, 1, 1}, Gap::first), 10U);
    EXPECT_EQ(small_list().offset_for({0, 1, 11, 1, 1}, Gap::first), 50U);
    EXPECT_EQ(small_list().offset_for({0, 2, 1, 1, 1}, Gap::first), 99U);
    EXPECT_EQ(small_list().offset_for({2, 3, 1, 1, 1}, Gap::first), 0U);
}

TEST(OffsetList, FindsTheSmallestGap) {
    EXPECT_EQ(small_list().offset_for({0, 1, 4, 1, 1}, Gap::best), 40U);
    EXPECT_EQ(small_list().offset_for({0, 1, 5, 1, 1}, Gap::best), 10U);
    EXPECT_EQ(small_list().offset_for({0, 1, 11, 1, 1}, Gap::best), 50U);
}

TEST(OffsetList, LeavesRoomForAlignment) {
    EXPECT_EQ(small_list().offset_for({0, 1, 4, 16, 1}, Gap::first), 16U);
    EXPECT_EQ(small_list().offset_for({0, 1, 5, 16, 1}, Gap::first), 64U);
    EXPECT_EQ(small_list().offset_for({0, 1, 4, 8, 1}, Gap::best), 40U);
    EXPECT_EQ(small_list().offset_for({0, 1, 4, 16, 1}, Gap::best), 16U);
}

TEST(OffsetList, VisitsAliveBuffersFromTheLowestUp) {
    std::vector<std::uint32_t> seen;
    small_list().visit_alive({0, 1, 1, 1, 1},
                             [&](const Placed& one) { seen.push_back(one.index); });
    EXPECT_EQ(seen, (std::vector<std::uint32_t>{0, 1, 2}));
}

// Enough buffers for many blocks, and many at the same offset.
TEST(OffsetList, StaysSortedUnderInsertionsAndRemovals) {
    planner_tests::Generator generator(41);
    OffsetList list;
    std::vector<Placed> model;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        const auto bottom = static_cast<std::uint64_t>(draw(generator, 0, 300));
        model.push_back({0, 1, bottom, bottom + 1, i});
        list.add(model.back());
        if (draw(generator, 0, 2) != 0) continue;
        const auto at = draw(generator, 0, static_cast<std::int64_t>(model.size()) - 1);
        list.remove(model[static_cast<std::size_t>(at)]);
        model.erase(model.begin() + at);
    }
    std::vector<Placed> seen;
    list.visit_alive({0, 1, 1, 1, 1}, [&](const Placed& one) { seen.push_back(one); });
    EXPECT_EQ(list.size(), model.size());
    ASSERT_EQ(seen.size(), model.size());
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end(), [](const Placed& a, const Placed& b) {
        return a.bottom < b.bottom;
    }));
    std::sort(seen.begin(), seen.end(),
              [](const Placed& a, const Placed& b) { return a.index < b.index; });
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].index, model[i].index);
    for (const Placed& one : model) list.remove(one);
    EXPECT_EQ(list.size(), 0U);
    EXPECT_EQ(list.offset_for({0, 1, 1, 1, 1}, Gap::first), 0U);
}

}  // namespace
