#include "plan/planner/search_order.hpp"
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace {

using namespace tensorpool::planner;

// The last slice has 30 unplaced bytes, the others 10.
const Problem problem{.buffers = {{0, 2, 10, 1, 50}, {0, 1, 60, 1, 20}, {2, 3, 30, 1, 1}},
                      .slices = 3};
const std::vector<std::uint64_t> slice_bytes{10, 10, 30};

std::vector<std::uint32_t> sorted(SearchOrder order, const SliceTrouble& trouble,
                                  const OrderNoise& noise) {
    std::vector<std::uint32_t> buffers{0, 1, 2};
    sort_for_search(buffers, order, {problem, slice_bytes, trouble, noise});
    return buffers;
}

std::vector<std::uint32_t> sorted(SearchOrder order) {
    return sorted(order, SliceTrouble(3), OrderNoise(3));
}

using Order = std::vector<std::uint32_t>;

TEST(SearchOrder, NamesMatchTheSortKeys) {
    EXPECT_EQ(sorted(SearchOrder::crowd_time_area), (Order{2, 0, 1}));
    EXPECT_EQ(sorted(SearchOrder::crowd_slice_area), (Order{2, 1, 0}));
    EXPECT_EQ(sorted(SearchOrder::slice_area_crowd), (Order{1, 2, 0}));
    EXPECT_EQ(sorted(SearchOrder::time_area_crowd), (Order{0, 1, 2}));
    EXPECT_EQ(sorted(SearchOrder::trouble_time_area), (Order{0, 1, 2}));
    EXPECT_EQ(sorted(SearchOrder::trouble_slices_area), (Order{0, 1, 2}));
}

TEST(SearchOrder, BuffersWithFailuresComeFirst) {
    SliceTrouble trouble(3);
    trouble.add(2);
    EXPECT_EQ(sorted(SearchOrder::trouble_time_area, trouble, OrderNoise(3)), (Order{2, 0, 1}));
}

TEST(SearchOrder, SortsEqualBuffersByIndex) {
    const Problem same{.buffers = {{0, 1, 1, 1, 1}, {0, 1, 1, 1, 1}, {0, 1, 1, 1, 1}}, .slices = 1};
    const std::vector<std::uint64_t> bytes{3};
    for (const SearchOrder order : all_search_orders) {
        std::vector<std::uint32_t> buffers{2, 0, 1};
        sort_for_search(buffers, order, {same, bytes, SliceTrouble(1), OrderNoise(3)});
        EXPECT_EQ(buffers, (Order{0, 1, 2}));
    }
}

TEST(SliceTrouble, RecentFailuresCountMore) {
    SliceTrouble trouble(2);
    trouble.add(0);
    trouble.add(1);
    EXPECT_GT(trouble.max({1, 2, 1, 1, 1}), trouble.max({0, 1, 1, 1, 1}));
    EXPECT_EQ(trouble.max({0, 2, 1, 1, 1}), trouble.max({1, 2, 1, 1, 1}));
}

TEST(SliceTrouble, NeverOverflows) {
    SliceTrouble trouble(2);
    for (int i = 0; i < 2'000'000; ++i) trouble.add(static_cast<std::uint32_t>(i % 2));
    EXPECT_LT(trouble.max({0, 2, 1, 1, 1}), 1e200);
    EXPECT_GT(trouble.max({1, 2, 1, 1, 1}), trouble.max({0, 1, 1, 1, 1}));
}

TEST(OrderNoise, DrawsTheSameSequenceInEveryRun) {
    OrderNoise one(50);
    OrderNoise other(50);
    for (int draw = 0; draw < 3; ++draw) {
        one.draw();
        other.draw();
        bool moved = false;
        for (std::uint32_t i = 0; i < 50; ++i) {
            EXPECT_EQ(one[i], other[i]);
            EXPECT_NEAR(one[i], 1, 0.15);
            moved = moved || one[i] != 1;
        }
        EXPECT_TRUE(moved);
    }
    one.clear();
    EXPECT_EQ(one[7], 1);
}

}  // namespace
