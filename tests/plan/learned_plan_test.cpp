#include "plan/learned_plan.hpp"

#include <gtest/gtest.h>

#include "plan/plans.hpp"

namespace tensorpool::planned {
namespace {

TEST(LearnedPlan, PlansRequestsNotLeftToThePool) {
    std::vector<Request> requests = testing::small_plan().requests;
    const LearnedPlan plan = plan_sequence(requests, {});
    EXPECT_EQ(plan.requests, requests);
    ASSERT_EQ(plan.offsets.size(), 5);
    EXPECT_EQ(plan.offsets[4], LearnedPlan::no_offset);
    EXPECT_EQ(plan.lower_bound_bytes, 8 * 64);
    EXPECT_EQ(plan.peak_bytes, 8 * 64);
    EXPECT_EQ(plan.pool_peak_bytes, 8 * 128);
    EXPECT_NO_THROW(validate(lifetimes_of(requests), memory_plan_of(plan)));
}

TEST(LearnedPlan, IsMadeWithAnyBudget) {
    const LearnedPlan plan =
        plan_sequence(testing::small_plan().requests, std::chrono::nanoseconds(1));
    EXPECT_NO_THROW(validate(lifetimes_of(plan.requests), memory_plan_of(plan)));
}

TEST(LearnedPlan, OfNoPlannedRequestsNeedsNoMemory) {
    const LearnedPlan plan = plan_sequence({testing::request_of(1, Request::outlives)}, {});
    EXPECT_EQ(plan.peak_bytes, 0);
    EXPECT_EQ(memory_plan_of(plan).offsets.size(), 0);
}

}  // namespace
}  // namespace tensorpool::planned
