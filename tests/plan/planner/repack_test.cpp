#include <chrono>

#include <gtest/gtest.h>

#include "plan/planner/instances.hpp"
#include "plan/planner/portfolio.hpp"

namespace {

using planner_tests::Lifetimes;
using tensorpool::planner::best_greedy;
using tensorpool::planner::Candidate;
using tensorpool::planner::compress;
using tensorpool::planner::repack;
using tensorpool::planner::Section;
using tensorpool::planner::Work;

Work work_of(std::uint64_t steps) {
    return Work(Work::Clock::now() + std::chrono::hours(1), steps);
}

std::string fault_of(const Lifetimes& lifetimes, const Section& section,
                     const Candidate& candidate) {
    Lifetimes of_section;
    for (const std::uint32_t origin : section.origins) of_section.push_back(lifetimes[origin]);
    tensorpool::MemoryPlan plan;
    plan.offsets = candidate.packing.offsets;
    plan.peak_bytes = candidate.packing.peak_bytes;
    return planner_tests::fault_of(of_section, plan);
}

class Repack : public testing::Test {
protected:
    /// A cut rectangle of 64 KiB, for which the greedy orders do not find the optimum.
    void SetUp() override {
        planner_tests::Generator generator(61);
        lifetimes_ = planner_tests::cut_rectangle(generator, 65'536, 400, 9);
        section_ = compress(lifetimes_).at(0);
        greedy_ = best_greedy(section_.problem, 0);
        ASSERT_GT(greedy_.packing.peak_bytes, 65'536U);
    }

    Lifetimes lifetimes_;
    Section section_;
    Candidate greedy_;
};

TEST_F(Repack, LowersThePeakOfAGreedyPacking) {
    Candidate best = greedy_;
    Work work = work_of(0);
    EXPECT_TRUE(repack(section_.problem, 65'536, work, best.packing));
    EXPECT_LT(best.packing.peak_bytes, greedy_.packing.peak_bytes);
    EXPECT_GE(best.packing.peak_bytes, 65'536U);
    EXPECT_EQ(fault_of(lifetimes_, section_, best), "");
}

TEST_F(Repack, DoesNothingIfThePeakIsLowEnough) {
    Candidate best = greedy_;
    Work work = work_of(0);
    EXPECT_FALSE(repack(section_.problem, greedy_.packing.peak_bytes, work, best.packing));
    EXPECT_EQ(best.packing.offsets, greedy_.packing.offsets);
    EXPECT_EQ(work.steps(), 0U);
}

TEST_F(Repack, LeavesAValidPackingWheneverTheWorkEnds) {
    for (std::uint64_t steps = 1; steps < 3000; steps = steps * 3 / 2 + 1) {
        Candidate best = greedy_;
        Work work = work_of(steps);
        const bool lower = repack(section_.problem, 65'536, work, best.packing);
        EXPECT_EQ(lower, best.packing.peak_bytes < greedy_.packing.peak_bytes);
        EXPECT_EQ(fault_of(lifetimes_, section_, best), "");
    }
}

TEST_F(Repack, IsDeterministic) {
    Candidate one = greedy_;
    Candidate other = greedy_;
    Work work = work_of(0);
    Work again = work_of(0);
    repack(section_.problem, 65'536, work, one.packing);
    repack(section_.problem, 65'536, again, other.packing);
    EXPECT_EQ(one.packing.offsets, other.packing.offsets);
    EXPECT_EQ(work.steps(), again.steps());
}

TEST(RepackAligned, KeepsAlignments) {
    planner_tests::Generator generator(62);
    for (int i = 0; i < 30; ++i) {
        Lifetimes lifetimes = planner_tests::random_lifetimes(generator, 150, 60, 3000, 8);
        lifetimes.push_back({0, 60, 1});
        const Section section = compress(lifetimes).at(0);
        Candidate best = best_greedy(section.problem, 0);
        Work work = work_of(0);
        repack(section.problem, lower_bound(section.problem), work, best.packing);
        EXPECT_EQ(fault_of(lifetimes, section, best), "");
    }
}

}  // namespace
