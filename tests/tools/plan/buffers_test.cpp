#include "plan/buffers.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::planning {
namespace {

TEST(Buffers, LowerBoundIsTheMaximumAliveAtOnce) {
    EXPECT_EQ(lower_bound_of({}), 0u);
    EXPECT_EQ(lower_bound_of({{0, 2, 10}, {1, 3, 20}, {2, 4, 25}}), 45u);
}

TEST(Buffers, TouchingIntervalsAreNotAliveAtOnce) {
    EXPECT_EQ(lower_bound_of({{5, 9, 10}, {0, 5, 20}, {9, 10, 15}}), 20u);
}

TEST(Buffers, PeakIsTheHighestEnd) {
    EXPECT_EQ(peak_of({}, {}), 0u);
    EXPECT_EQ(peak_of({{0, 1, 10}, {0, 1, 5}}, {0, 100}), 105u);
}

}  // namespace
}  // namespace tensorpool::command::planning
