#include "plan/planned_state.hpp"

#include <gtest/gtest.h>

namespace tensorpool::planned {
namespace {

TEST(Drift, NeedsConsecutiveDriftingIterations) {
    Drift drift(0.1, 2);
    EXPECT_FALSE(drift.note_iteration(11, 100));
    EXPECT_FALSE(drift.note_iteration(10, 100));
    EXPECT_FALSE(drift.note_iteration(11, 100));
    EXPECT_TRUE(drift.note_iteration(11, 100));
}

TEST(Drift, LimitDoublesWithEachUselessPlan) {
    Drift drift(0, 1);
    for (const int needed : {1, 2, 4, 8, 16, 32, 64, 64}) {
        for (int i = 1; i < needed; ++i) EXPECT_FALSE(drift.note_iteration(1, 100)) << needed;
        EXPECT_TRUE(drift.note_iteration(1, 100)) << needed;
        drift.note_end();
    }
    EXPECT_FALSE(drift.note_iteration(0, 100));  // an iteration without drift resets the limit
    EXPECT_TRUE(drift.note_iteration(1, 100));
}

TEST(Drift, ForgetResetsAllCounts) {
    Drift drift(0, 2);
    EXPECT_FALSE(drift.note_iteration(1, 1));
    drift.forget();
    EXPECT_FALSE(drift.note_iteration(1, 1));
}

}  // namespace
}  // namespace tensorpool::planned
