#include "plan/planner/portfolio.hpp"
#include <gtest/gtest.h>

#include "plan/planner/instances.hpp"

namespace {

using tensorpool::PlanMethod;
using tensorpool::planner::best_greedy;
using tensorpool::planner::Candidate;
using tensorpool::planner::compress;
using tensorpool::planner::Gap;
using tensorpool::planner::order_of;
using tensorpool::planner::place;
using tensorpool::planner::Problem;

Problem problem_of(unsigned seed) {
    planner_tests::Generator generator(seed);
    planner_tests::Lifetimes lifetimes =
        planner_tests::random_lifetimes(generator, 80, 40, 3000, 4);
    lifetimes.push_back({0, 40, 1});
    return compress(lifetimes).at(0).problem;
}

TEST(Portfolio, IsNoWorseThanAnyOfItsOrders) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const Problem problem = problem_of(seed);
        const Candidate best = best_greedy(problem, 0);
        for (int method = 1; method <= static_cast<int>(PlanMethod::by_time); ++method) {
            const auto order = order_of(problem, static_cast<PlanMethod>(method));
            for (const Gap gap : {Gap::first, Gap::best}) {
                EXPECT_LE(best.packing.peak_bytes, place(problem, order, gap).packing.peak_bytes);
            }
        }
    }
}

TEST(Portfolio, EndsWithTheFirstPackingThatIsGoodEnough) {
    const Problem problem = problem_of(1);
    const Candidate any = best_greedy(problem, UINT64_MAX);
    EXPECT_EQ(any.method, PlanMethod::by_class);
    const auto order = order_of(problem, PlanMethod::by_class);
    EXPECT_EQ(any.packing.offsets, place(problem, order, Gap::first).packing.offsets);
}

}  // namespace
