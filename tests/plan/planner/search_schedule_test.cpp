#include <gtest/gtest.h>
#include "plan/planner/search_order.hpp"

namespace {

using namespace tensorpool::planner;

constexpr std::size_t orders = all_search_orders.size();

std::vector<SearchTurn> turns(std::size_t buffers, std::size_t count) {
    SearchSchedule schedule(buffers);
    std::vector<SearchTurn> turns;
    for (std::size_t i = 0; i < count; ++i, schedule.advance()) turns.push_back(schedule.turn());
    return turns;
}

TEST(SearchSchedule, EachRoundBeginsWithoutNoise) {
    const auto all = turns(100, orders);
    for (std::size_t i = 0; i < orders; ++i) {
        EXPECT_EQ(all[i].order, all_search_orders[i]);
        EXPECT_FALSE(all[i].noisy);
        EXPECT_EQ(all[i].nodes, all.front().nodes);
    }
}

TEST(SearchSchedule, PlainRoundsAndDrawsBetweenThemDouble) {
    const auto all = turns(100, 60 * orders);
    std::vector<std::uint64_t> plain;
    std::vector<std::size_t> draws;
    for (std::size_t i = 0; i < all.size(); i += orders) {
        if (!all[i].noisy) {
            plain.push_back(all[i].nodes);
            draws.push_back(0);
        } else {
            ++draws.back();
        }
    }
    ASSERT_GE(plain.size(), 4U);
    for (std::size_t i = 1; i < plain.size(); ++i) EXPECT_EQ(plain[i], 2 * plain[i - 1]);
    EXPECT_EQ(draws[0], 1U);
    EXPECT_EQ(draws[1], 2U);
    EXPECT_EQ(draws[2], 4U);
}

TEST(SearchSchedule, OrdersShareADraw) {
    const auto all = turns(100, 4 * orders);
    EXPECT_TRUE(all[orders].first_with_noise);
    EXPECT_TRUE(all[orders].noisy);
    EXPECT_FALSE(all[orders + 1].first_with_noise);
    EXPECT_TRUE(all[orders + 1].noisy);
}

TEST(SearchSchedule, NoisyRunsFollowLuby) {
    const auto all = turns(100, 60 * orders);
    std::vector<std::uint64_t> nodes;
    for (std::size_t i = 0; i < all.size(); i += orders) {
        if (all[i].noisy) nodes.push_back(all[i].nodes / all[orders].nodes);
    }
    const std::vector<std::uint64_t> expected{1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8};
    ASSERT_GE(nodes.size(), expected.size());
    nodes.resize(expected.size());
    EXPECT_EQ(nodes, expected);
}

TEST(SearchSchedule, SmallProblemsGetAMinimumOfNodes) {
    EXPECT_GE(turns(1, 1).front().nodes, 256U);
}

}  // namespace
