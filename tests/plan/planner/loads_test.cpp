#include <gtest/gtest.h>
#include "plan/planner/portfolio.hpp"

namespace {

using tensorpool::planner::Loads;
using tensorpool::planner::Problem;

TEST(Loads, ReturnTheMaximumOfAnInterval) {
    const Problem problem = {.buffers = {{0, 2, 5, 1, 1}, {1, 4, 7, 1, 1}, {3, 5, 1, 1, 1}},
                             .slices = 5};
    const double loads[] = {5, 12, 7, 8, 1};
    const Loads actual(problem);
    for (std::uint32_t begin = 0; begin < 5; ++begin) {
        double max = 0;
        for (std::uint32_t end = begin + 1; end <= 5; ++end) {
            max = std::max(max, loads[end - 1]);
            EXPECT_EQ(actual.max(begin, end), max);
        }
    }
    EXPECT_EQ(actual.max(), 12);
}

}  // namespace
