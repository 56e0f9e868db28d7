#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <tensorpool/memory_plan.hpp>

#include "plan/planner/instances.hpp"

namespace {

using planner_tests::fault_of;
using planner_tests::Generator;
using planner_tests::Lifetimes;
using tensorpool::MemoryPlan;
using tensorpool::plan_memory;
using tensorpool::PlanMethod;
using tensorpool::PlanOptions;

constexpr PlanOptions greedy = {.budget = std::chrono::seconds(0)};

MemoryPlan checked_plan(const Lifetimes& lifetimes, const PlanOptions& options = greedy) {
    MemoryPlan plan = plan_memory(lifetimes, options);
    EXPECT_EQ(fault_of(lifetimes, plan), "");
    tensorpool::validate(lifetimes, plan);
    EXPECT_GE(plan.lower_bound_bytes, planner_tests::max_alive(lifetimes));
    EXPECT_GE(plan.peak_bytes, plan.lower_bound_bytes);
    return plan;
}

std::string refusal(const Lifetimes& lifetimes) {
    try {
        plan_memory(lifetimes, greedy);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(PlanMemory, EmptyInputNeedsNoMemory) {
    const MemoryPlan plan = checked_plan({});
    EXPECT_EQ(plan.peak_bytes, 0U);
    EXPECT_EQ(plan.method, PlanMethod::none);
    EXPECT_TRUE(plan.optimal);
}

TEST(PlanMemory, OneBufferLiesAtOffsetZero) {
    const MemoryPlan plan = checked_plan({{-5, 7, 100, 64}});
    EXPECT_EQ(plan.offsets, std::vector<std::uint64_t>{0});
    EXPECT_EQ(plan.peak_bytes, 100U);
    EXPECT_EQ(plan.lower_bound_bytes, 100U);
    EXPECT_TRUE(plan.optimal);
    EXPECT_NE(plan.method, PlanMethod::none);
}

TEST(PlanMemory, AChainSharesTheSameBytes) {
    Lifetimes chain;
    for (std::int64_t i = 0; i < 1000; ++i) chain.push_back({i, i + 1, 64});
    const MemoryPlan plan = checked_plan(chain);
    EXPECT_EQ(plan.peak_bytes, 64U);
    EXPECT_TRUE(plan.optimal);
}

TEST(PlanMemory, BuffersAllAliveAtOnceAreStacked) {
    Lifetimes all;
    for (std::int64_t i = 0; i < 100; ++i) {
        all.push_back({-i, 1 + i, static_cast<std::uint64_t>(i) + 1});
    }
    const MemoryPlan plan = checked_plan(all);
    EXPECT_EQ(plan.peak_bytes, 5050U);
    EXPECT_TRUE(plan.optimal);
}

TEST(PlanMemory, BuffersOfZeroBytesTakeNoMemory) {
    const MemoryPlan plan = checked_plan({{0, 9, 0, 4096}, {0, 9, 8}, {3, 4, 0}});
    EXPECT_EQ(plan.offsets, (std::vector<std::uint64_t>{0, 0, 0}));
    EXPECT_EQ(plan.peak_bytes, 8U);
    EXPECT_EQ(checked_plan({{0, 9, 0}}).method, PlanMethod::none);
}

TEST(PlanMemory, HandlesTheLimitsOfTheTimeType) {
    constexpr std::int64_t first = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
    const MemoryPlan plan =
        checked_plan({{first, last, 8}, {first, first + 1, 8}, {last - 1, last, 8}, {0, last, 4}});
    EXPECT_EQ(plan.peak_bytes, 20U);
    EXPECT_TRUE(plan.optimal);
}

TEST(PlanMemory, AcceptsSizesUpToTwoToThe63) {
    constexpr std::uint64_t max_sum = std::uint64_t{1} << 63;
    const MemoryPlan plan = checked_plan({{0, 2, max_sum - 10}, {0, 1, 6}, {1, 2, 4}});
    EXPECT_EQ(plan.peak_bytes, max_sum - 4);
    EXPECT_EQ(checked_plan({{0, 2, max_sum}}).peak_bytes, max_sum);
    EXPECT_EQ(refusal({{0, 2, max_sum - 10}, {2, 3, 11}}),
              "tensorpool: plan: buffer 1 of 11 B, aligned to 1 B, makes all sizes and alignments "
              "together exceed 2^63 B; expected at most 2^63 B");
    EXPECT_NE(refusal({{0, 2, 1, max_sum}, {0, 2, 1, max_sum}}), "");
}

TEST(PlanMemory, RejectsAndNamesEmptyIntervals) {
    EXPECT_EQ(refusal({{0, 7, 64}, {7, 7, 64}}),
              "tensorpool: plan: buffer 1 is alive in [7, 7); expected an end after the beginning");
    EXPECT_EQ(refusal({{8, -7, 0}}),
              "tensorpool: plan: buffer 0 is alive in [8, -7); expected an end after the "
              "beginning");
}

TEST(PlanMemory, RejectsAlignmentsThatAreNotPowersOfTwo) {
    EXPECT_EQ(refusal({{0, 7, 64, 48}}),
              "tensorpool: plan: buffer 0 is aligned to 48 B; expected a power of two");
    EXPECT_EQ(refusal({{0, 7, 64, 0}}),
              "tensorpool: plan: buffer 0 is aligned to 0 B; expected a power of two");
}

TEST(PlanMemory, LowerBoundCountsTheSharedAlignment) {
    const MemoryPlan plan = checked_plan({{0, 7, 100, 64}, {0, 7, 90, 64}, {0, 7, 65, 128}});
    EXPECT_EQ(plan.lower_bound_bytes, 3 * 128U - 63);
    EXPECT_EQ(plan.peak_bytes, 3 * 128U - 63);
    EXPECT_TRUE(plan.optimal);
}

TEST(PlanMemory, SectionsShareTheSameBytes) {
    // The first two buffers need 30 B together; the last one needs 40 B at another time.
    const MemoryPlan plan = checked_plan({{0, 2, 10}, {1, 3, 20}, {5, 6, 40}});
    EXPECT_EQ(plan.peak_bytes, 40U);
    EXPECT_EQ(plan.offsets[2], 0U);
}

TEST(PlanMemory, GreedyPlansOfRandomBuffersAreValid) {
    Generator generator(1);
    for (int i = 0; i < 300; ++i) {
        const auto count = static_cast<std::size_t>(planner_tests::draw(generator, 1, 60));
        checked_plan(planner_tests::random_lifetimes(generator, count, 50, 1000, i % 9));
    }
}

TEST(PlanMemory, NoPlanIsBelowAKnownOptimum) {
    Generator generator(2);
    for (int i = 0; i < 100; ++i) {
        const Lifetimes pieces = planner_tests::cut_rectangle(generator, 4096, 100, 1 + i % 8);
        const MemoryPlan plan = checked_plan(pieces);
        EXPECT_EQ(plan.lower_bound_bytes, 4096U);
        EXPECT_GE(plan.peak_bytes, 4096U);
        EXPECT_EQ(plan.optimal, plan.peak_bytes == 4096);
    }
}

TEST(PlanMemory, IsDeterministic) {
    Generator generator(3);
    const Lifetimes lifetimes = planner_tests::random_lifetimes(generator, 200, 60, 5000, 6);
    const PlanOptions options = {.budget = std::chrono::hours(1), .max_steps = 20'000};
    const MemoryPlan one = checked_plan(lifetimes, options);
    const MemoryPlan other = checked_plan(lifetimes, options);
    EXPECT_EQ(one.offsets, other.offsets);
    EXPECT_EQ(one.peak_bytes, other.peak_bytes);
    EXPECT_EQ(one.method, other.method);
}

TEST(PlanMemory, OnlyTheOrderOfTimesMatters) {
    Generator generator(4);
    const Lifetimes lifetimes = planner_tests::random_lifetimes(generator, 80, 60, 5000);
    Lifetimes stretched = lifetimes;
    for (auto& one : stretched) {
        one.begin = one.begin * one.begin * one.begin - 7;
        one.end = one.end * one.end * one.end - 7;
    }
    EXPECT_EQ(checked_plan(lifetimes).offsets, checked_plan(stretched).offsets);
}

TEST(PlanMemory, InputOrderHardlyChangesThePeak) {
    Generator generator(5);
    Lifetimes lifetimes = planner_tests::random_lifetimes(generator, 80, 30, 4);
    const std::uint64_t peak = checked_plan(lifetimes).peak_bytes;
    std::vector<std::size_t> order(lifetimes.size());
    for (int i = 0; i < 20; ++i) {
        const auto a = static_cast<std::size_t>(planner_tests::draw(generator, 0, 79));
        const auto b = static_cast<std::size_t>(planner_tests::draw(generator, 0, 79));
        if (lifetimes[a].begin == lifetimes[b].begin) std::swap(lifetimes[a], lifetimes[b]);
    }
    EXPECT_LE(checked_plan(lifetimes).peak_bytes, peak + peak / 4);
}

/// Returns the optimum by brute force. For each order of the buffers, it places each right above
/// those before it that are alive with it. One of these orders is that of an optimal plan, listed
/// from the bottom up.
std::uint64_t optimum_of(const Lifetimes& lifetimes) {
    std::vector<std::size_t> order(lifetimes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::uint64_t min_peak = UINT64_MAX;
    do {
        std::vector<std::uint64_t> tops(order.size());
        std::uint64_t peak = 0;
        for (auto at = order.begin(); at != order.end(); ++at) {
            const auto& one = lifetimes[*at];
            std::uint64_t offset = 0;
            for (auto other = order.begin(); other != at; ++other) {
                const bool at_once =
                    lifetimes[*other].begin < one.end && one.begin < lifetimes[*other].end;
                if (at_once) offset = std::max(offset, tops[*other]);
            }
            offset = (offset + one.alignment - 1) / one.alignment * one.alignment;
            tops[*at] = offset + one.bytes;
            peak = std::max(peak, tops[*at]);
        }
        min_peak = std::min(min_peak, peak);
    } while (std::next_permutation(order.begin(), order.end()));
    return min_peak;
}

TEST(PlanMemory, SmallPlansAreOptimalAndReportedAsOptimal) {
    Generator generator(6);
    for (int i = 0; i < 400; ++i) {
        const Lifetimes lifetimes =
            planner_tests::random_lifetimes(generator, 1 + i % 7, 9, 12, i % 3);
        const std::uint64_t optimum = optimum_of(lifetimes);
        const MemoryPlan first = checked_plan(lifetimes);
        EXPECT_LE(first.lower_bound_bytes, optimum);
        EXPECT_GE(first.peak_bytes, optimum);
        if (first.optimal) {
            EXPECT_EQ(first.peak_bytes, optimum);
        }
        const MemoryPlan searched =
            checked_plan(lifetimes, {.budget = std::chrono::hours(1), .max_steps = 1'000'000});
        EXPECT_EQ(searched.peak_bytes, optimum);
        EXPECT_TRUE(searched.optimal);
    }
}

TEST(PlanMemory, MethodsHaveNames) {
    EXPECT_STREQ(to_string(PlanMethod::none), "none");
    EXPECT_STREQ(to_string(PlanMethod::by_size), "by size");
    EXPECT_STREQ(to_string(PlanMethod::by_class), "by class");
    EXPECT_STREQ(to_string(PlanMethod::by_area), "by area");
    EXPECT_STREQ(to_string(PlanMethod::by_lifetime), "by lifetime");
    EXPECT_STREQ(to_string(PlanMethod::by_conflicts), "by conflicts");
    EXPECT_STREQ(to_string(PlanMethod::by_time), "by time");
    EXPECT_STREQ(to_string(PlanMethod::repacking), "repacking");
    EXPECT_STREQ(to_string(PlanMethod::exact), "exact");
}

}  // namespace
