#include <gtest/gtest.h>

#include "plan/planner/instances.hpp"
#include "plan/planner/problem.hpp"

namespace {

using planner_tests::Lifetimes;
using tensorpool::planner::compress;
using tensorpool::planner::granule;
using tensorpool::planner::lower_bound;

std::uint64_t bound_of(const Lifetimes& lifetimes) {
    return lower_bound(compress(lifetimes).at(0).problem);
}

std::uint64_t granule_of(const Lifetimes& lifetimes) {
    return granule(compress(lifetimes).at(0).problem);
}

TEST(LowerBound, IsTheMaximumAliveAtOnce) {
    EXPECT_EQ(bound_of({{0, 4, 10}, {3, 9, 20}, {4, 5, 15}}), 35U);
    planner_tests::Generator generator(31);
    for (int i = 0; i < 100; ++i) {
        Lifetimes lifetimes = planner_tests::random_lifetimes(generator, 30, 40, 99);
        lifetimes.push_back({0, 40, 1});
        EXPECT_EQ(bound_of(lifetimes), planner_tests::max_alive(lifetimes));
    }
}

TEST(LowerBound, CountsPaddingExceptThatOfTheHighestBuffer) {
    EXPECT_EQ(bound_of({{0, 4, 10, 64}}), 10U);
    EXPECT_EQ(bound_of({{0, 4, 10, 64}, {0, 4, 60, 64}}), 64 + 10U);
    EXPECT_EQ(bound_of({{0, 4, 10, 64}, {0, 4, 60, 32}}), 32 + 64 - 22U);
}

TEST(LowerBound, CountsThePaddingOfAliveBuffersOnly) {
    // The buffer with the largest padding ends before the slice that determines the bound.
    EXPECT_EQ(bound_of({{0, 2, 1, 64}, {1, 9, 60, 64}, {2, 9, 120, 64}}), 64 + 128 - 8U);
}

TEST(Granule, DividesSizesAndAlignments) {
    EXPECT_EQ(granule_of({{0, 4, 48}, {0, 4, 72}}), 24U);
    EXPECT_EQ(granule_of({{0, 4, 48}, {0, 4, 72, 16}}), 8U);
    EXPECT_EQ(granule_of({{0, 4, 7}, {0, 4, 21, 64}}), 1U);
}

}  // namespace
