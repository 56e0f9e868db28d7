#include "plan/served_plan.hpp"

#include <gtest/gtest.h>

#include "plan/plans.hpp"

namespace tensorpool::planned {
namespace {

std::vector<std::uint32_t> predecessors_of(const Predecessors& predecessors, std::size_t buffer) {
    return {
        predecessors.numbers.begin() + static_cast<std::ptrdiff_t>(predecessors.first[buffer]),
        predecessors.numbers.begin() + static_cast<std::ptrdiff_t>(predecessors.first[buffer + 1])};
}

using Numbers = std::vector<std::uint32_t>;

TEST(Predecessors, AreTheLastBuffersBeforeForEachByte) {
    const Predecessors predecessors = find_predecessors(testing::small_plan());
    EXPECT_EQ(predecessors_of(predecessors, 0), (Numbers{2}));
    EXPECT_EQ(predecessors_of(predecessors, 1), (Numbers{2, 3}));
    EXPECT_EQ(predecessors_of(predecessors, 2), (Numbers{0, 1}));
    EXPECT_EQ(predecessors_of(predecessors, 3), (Numbers{2}));
}

TEST(Predecessors, OfABufferThatSharesNoBytesAreItself) {
    const Predecessors predecessors = find_predecessors(testing::plan_of({{0, 1, 2}, {1, 1, 2}}));
    EXPECT_EQ(predecessors_of(predecessors, 0), (Numbers{0}));
    EXPECT_EQ(predecessors_of(predecessors, 1), (Numbers{1}));
}

TEST(Predecessors, LeftToPoolRequestsHaveNone) {
    const Predecessors predecessors = find_predecessors(testing::small_plan());
    EXPECT_EQ(predecessors_of(predecessors, 4), Numbers());
    EXPECT_EQ(predecessors.first.size(), 6);
}

TEST(Predecessors, AreListedOnceEach) {
    const Predecessors predecessors =
        find_predecessors(testing::plan_of({{0, 6, 1}, {2, 2, 2}, {0, 6, 3}}));
    EXPECT_EQ(predecessors_of(predecessors, 2), (Numbers{0, 1}));
    EXPECT_EQ(predecessors_of(predecessors, 0), (Numbers{2}));
}

TEST(Predecessors, AreAtMostFourTimesTheBuffers) {
    LearnedPlan plan;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        testing::add(plan, {i * 7919 % 97, 1 + i * 104729 % 31, i + 1});
    }
    EXPECT_LE(find_predecessors(plan).numbers.size(), 4000);
}

TEST(Predecessors, OfAnEmptyPlanAreNone) {
    EXPECT_EQ(find_predecessors(LearnedPlan{}).first, std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace tensorpool::planned
