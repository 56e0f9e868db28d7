#include <chrono>
#include "plan/planner/portfolio.hpp"

#include <gtest/gtest.h>

#include "plan/planner/exact_search.hpp"
#include "plan/planner/instances.hpp"

namespace {

using tensorpool::PlanMethod;
using tensorpool::planner::best_greedy;
using tensorpool::planner::Candidate;
using tensorpool::planner::compress;
using tensorpool::planner::lower_bound;
using tensorpool::planner::Problem;
using tensorpool::planner::SearchTables;
using tensorpool::planner::shrink;
using tensorpool::planner::Work;

Work work_of(std::uint64_t steps) {
    return Work(Work::Clock::now() + std::chrono::hours(1), steps);
}

const planner_tests::Lifetimes some = {{0, 3, 2}, {2, 5, 1}, {4, 7, 2}, {6, 9, 1}};

TEST(Shrink, DoesNothingIfThePeakIsLowEnough) {
    const Problem problem = compress(some).at(0).problem;
    Candidate best = best_greedy(problem, 0);
    const Candidate before = best;
    Work work = work_of(0);
    EXPECT_EQ(shrink(problem, 3, best.packing.peak_bytes, work, best), 3U);
    EXPECT_EQ(best.packing.offsets, before.packing.offsets);
    EXPECT_EQ(work.steps(), 0U);
}

TEST(Shrink, NeverRaisesThePeakNorProvesMoreThanIt) {
    planner_tests::Generator generator(71);
    for (int i = 0; i < 40; ++i) {
        planner_tests::Lifetimes lifetimes =
            planner_tests::random_lifetimes(generator, 25, 20, 30, i % 4);
        lifetimes.push_back({0, 20, 1});
        const Problem problem = compress(lifetimes).at(0).problem;
        Candidate best = best_greedy(problem, 0);
        const std::uint64_t before = best.packing.peak_bytes;
        Work work = work_of(50'000);
        const std::uint64_t proven = shrink(problem, lower_bound(problem), 0, work, best);
        EXPECT_LE(best.packing.peak_bytes, before);
        EXPECT_LE(proven, best.packing.peak_bytes);
        if (best.packing.peak_bytes < before) {
            EXPECT_GT(best.method, PlanMethod::by_time);
        }
    }
}

/// Eight buffers that need more than their lower bound.
planner_tests::Lifetimes tight_lifetimes() {
    planner_tests::Generator generator(73);
    while (true) {
        planner_tests::Lifetimes lifetimes = planner_tests::random_lifetimes(generator, 8, 9, 5);
        const auto plan = tensorpool::plan_memory(lifetimes);
        if (plan.optimal && plan.peak_bytes > plan.lower_bound_bytes) return lifetimes;
    }
}

// Without the limit on the problem's size, this would take an hour.
TEST(Shrink, StopsIfTheProblemIsTooLargeToSearch) {
    const planner_tests::Lifetimes tight = tight_lifetimes();
    planner_tests::Lifetimes lifetimes;
    while (lifetimes.size() < SearchTables::max_buffers) {
        const auto start = static_cast<std::int64_t>(lifetimes.size()) * 9;
        for (const auto& one : tight) {
            lifetimes.push_back({start + one.begin, start + one.end, 100 * one.bytes});
        }
    }
    lifetimes.push_back({0, static_cast<std::int64_t>(lifetimes.size()) * 9, 1});  // one section
    const Problem problem = compress(lifetimes).at(0).problem;
    ASSERT_EQ(problem.buffers.size(), lifetimes.size());
    Candidate best = best_greedy(problem, 0);
    Work work = work_of(0);
    shrink(problem, lower_bound(problem), 0, work, best);
    EXPECT_GT(best.packing.peak_bytes, lower_bound(problem));
    EXPECT_FALSE(work.over());
}

// Two buffers begin at multiples of 512, so the second ends at 576. The lower bound is below that.
TEST(Shrink, ProvesNoMoreThanIsNeededForAnyEnoughBytes) {
    const Problem problem =
        compress(planner_tests::Lifetimes{{0, 1, 64, 512}, {0, 1, 64, 512}, {0, 1, 64, 64}})
            .at(0)
            .problem;
    for (std::uint64_t enough = 150; enough < 576; ++enough) {
        Candidate best = best_greedy(problem, 0);
        Work work = work_of(0);
        EXPECT_LE(shrink(problem, lower_bound(problem), enough, work, best), 576U) << enough;
        EXPECT_EQ(best.packing.peak_bytes, 576U);
    }
}

TEST(Shrink, FindsThePackingOfACutRectangle) {
    planner_tests::Generator generator(72);
    for (int i = 0; i < 20; ++i) {
        planner_tests::Lifetimes pieces = planner_tests::cut_rectangle(generator, 1024, 60, 5);
        pieces.push_back({0, 60, 16});  // so that it is one section
        const Problem problem = compress(pieces).at(0).problem;
        Candidate best = best_greedy(problem, 0);
        Work work = work_of(2'000'000);
        EXPECT_EQ(shrink(problem, lower_bound(problem), 0, work, best), 1040U);
        EXPECT_EQ(best.packing.peak_bytes, 1040U);
    }
}

}  // namespace
