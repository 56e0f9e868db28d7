#include "arena/release_history.hpp"

#include <gtest/gtest.h>

namespace tensorpool::arena {
namespace {

TEST(ReleaseHistory, NoMarkIsStaleBeforeTheFirstRelease) {
    const ReleaseHistory history;
    EXPECT_EQ(history.count(), 0U);
    EXPECT_FALSE(history.went_below(100, 0));
}

TEST(ReleaseHistory, ReleaseToAMarkLeavesItValid) {
    ReleaseHistory history;
    for (int round = 0; round < 3; ++round) history.add(100);
    EXPECT_FALSE(history.went_below(100, 0));
}

TEST(ReleaseHistory, ReleaseMakesEarlierMarksAboveItStale) {
    ReleaseHistory history;
    history.add(50);
    EXPECT_TRUE(history.went_below(100, 0));
    EXPECT_FALSE(history.went_below(100, history.count()));
}

TEST(ReleaseHistory, LowReleaseIsKeptThroughHigherOnes) {
    ReleaseHistory history;
    history.add(50);
    const std::uint64_t between = history.count();
    history.add(200);
    EXPECT_TRUE(history.went_below(100, 0));
    EXPECT_FALSE(history.went_below(100, between));
    EXPECT_TRUE(history.went_below(300, between));
}

TEST(ReleaseHistory, ReleaseUnderWayShowsInTheSequence) {
    ReleaseHistory history;
    history.add(200);
    const std::uint64_t before = history.sequence();
    EXPECT_FALSE(ReleaseHistory::is_release_under_way(before));
    history.begin_release();
    EXPECT_TRUE(ReleaseHistory::is_release_under_way(history.sequence()));
    EXPECT_EQ(history.count(), 1U);
    history.cancel_release();
    EXPECT_EQ(history.sequence(), before) << "nothing was released";
    history.begin_release();
    history.finish_release(50);
    EXPECT_EQ(history.count(), 2U);
    EXPECT_TRUE(history.went_below(100, 1));
}

}  // namespace
}  // namespace tensorpool::arena
