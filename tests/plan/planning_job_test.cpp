#include "plan/learned_plan.hpp"

#include <gtest/gtest.h>

#include "plan/plans.hpp"

namespace tensorpool::planned {
namespace {

TEST(PlanningJob, MakesAPlanOnce) {
    PlanningJob job(testing::small_plan().requests, {});
    EXPECT_FALSE(job.is_done());
    job.run();
    job.run();
    ASSERT_TRUE(job.is_done());
    const std::optional<LearnedPlan> plan = job.take();
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->requests, testing::small_plan().requests);
}

TEST(PlanningJob, IsDoneWithoutAPlanIfNoneCanBeMade) {
    std::vector<Request> requests = {testing::request_of(1, 1)};
    requests[0].end = 0;  // before it began
    PlanningJob job(std::move(requests), {});
    job.run();
    EXPECT_TRUE(job.is_done());
    EXPECT_FALSE(job.take().has_value());
}

}  // namespace
}  // namespace tensorpool::planned
