#include <chrono>
#include "plan/planner/problem.hpp"

#include <gtest/gtest.h>

namespace {

using tensorpool::planner::Work;

const Work::Clock::time_point never = Work::Clock::time_point::max();

TEST(Work, EndsAfterMaxSteps) {
    for (const std::uint64_t steps : {1U, 255U, 256U, 257U, 1000U}) {
        Work work(never, steps);
        for (std::uint64_t i = 0; i < steps; ++i) ASSERT_TRUE(work.step());
        EXPECT_FALSE(work.step());
        EXPECT_FALSE(work.step());
        EXPECT_TRUE(work.over());
    }
}

TEST(Work, EndsAtTheDeadline) {
    Work work(Work::Clock::now(), 0);
    EXPECT_FALSE(work.step());
    EXPECT_TRUE(work.over());
}

TEST(Work, DeadlineGoesBackWithTheClock) {
    using std::chrono::hours;
    using std::chrono::seconds;
    const Work::Clock::time_point begin = Work::Clock::time_point() + hours(100);
    Work work(begin + seconds(10), 0);
    EXPECT_FALSE(work.is_past_deadline(begin + seconds(4)));
    EXPECT_FALSE(work.is_past_deadline(begin - hours(3)));
    EXPECT_FALSE(work.is_past_deadline(begin - hours(3) + seconds(5)));
    EXPECT_TRUE(work.is_past_deadline(begin - hours(3) + seconds(6)));
}

TEST(Work, NoDeadlineComesFromAClockThatJumps) {
    Work work(never, 0);
    for (const auto now :
         {Work::Clock::now(), Work::Clock::time_point::max() - std::chrono::hours(1),
          Work::Clock::time_point(), Work::Clock::now()}) {
        EXPECT_FALSE(work.is_past_deadline(now));
    }
}

TEST(Work, APartSpendsStepsOfTheWhole) {
    Work work(never, 100);
    Work part = work.part(30);
    while (part.step()) {
    }
    work.spend(part);
    EXPECT_GE(work.steps(), 30U);
    EXPECT_FALSE(work.over());
    Work rest = work.part(1000);
    while (rest.step()) {
    }
    EXPECT_LE(rest.steps(), 71U);
    work.spend(rest);
    EXPECT_FALSE(work.step());
}

TEST(Work, APartThatTookNoStepCountsAsOne) {
    Work work(never, 2);
    work.spend(work.part(1));
    work.spend(work.part(1));
    EXPECT_FALSE(work.step());
}

}  // namespace
