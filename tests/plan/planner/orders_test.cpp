#include <cstdint>
#include <vector>
#include "plan/planner/portfolio.hpp"

#include <gtest/gtest.h>

namespace {

using tensorpool::PlanMethod;
using tensorpool::planner::order_of;
using tensorpool::planner::Problem;
using Order = std::vector<std::uint32_t>;

const Problem problem = {
    .buffers = {{0, 1, 90, 1, 1}, {0, 6, 20, 1, 1}, {1, 4, 100, 1, 1}, {5, 6, 90, 1, 1}},
    .slices = 6};

TEST(Orders, BySizePutsTheLargestFirst) {
    EXPECT_EQ(order_of(problem, PlanMethod::by_size), (Order{2, 0, 3, 1}));
}

TEST(Orders, ByAreaPutsTheLargestAreaFirst) {
    EXPECT_EQ(order_of(problem, PlanMethod::by_area), (Order{2, 1, 0, 3}));
}

TEST(Orders, ByLifetimePutsTheLongestFirst) {
    EXPECT_EQ(order_of(problem, PlanMethod::by_lifetime), (Order{1, 2, 0, 3}));
}

TEST(Orders, ByConflictsPutsTheMostConflictingFirst) {
    // Bytes alive with each buffer: all with buffer 1, 120 B with 2, 110 B with 0 and with 3.
    EXPECT_EQ(order_of(problem, PlanMethod::by_conflicts), (Order{1, 2, 0, 3}));
}

TEST(Orders, ByTimePutsTheEarliestThenTheLargestFirst) {
    EXPECT_EQ(order_of(problem, PlanMethod::by_time), (Order{0, 1, 2, 3}));
}

TEST(Orders, ByClassPutsTheLongestOfAClassFirst) {
    // Three buffers are in one class. Two of them live for one slice; the busier slice comes first.
    EXPECT_EQ(order_of(problem, PlanMethod::by_class), (Order{2, 0, 3, 1}));
}

TEST(Orders, KeepTheOrderOfEqualBuffers) {
    const Problem equal = {.buffers = {{0, 1, 8, 1, 1}, {0, 1, 8, 1, 1}, {0, 1, 8, 1, 1}},
                           .slices = 1};
    for (int method = 1; method <= static_cast<int>(PlanMethod::by_time); ++method) {
        EXPECT_EQ(order_of(equal, static_cast<PlanMethod>(method)), (Order{0, 1, 2}));
    }
}

}  // namespace
