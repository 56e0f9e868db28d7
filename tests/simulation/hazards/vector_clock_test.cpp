#include "simulation/hazards/watch.hpp"

#include <gtest/gtest.h>

namespace tensorpool::device {
namespace {

TEST(VectorClock, JoinTakesTheMaximumOfEachTimeline) {
    VectorClock one;
    VectorClock two;
    one.raise(0, 5);
    two.raise(0, 3);
    two.raise(2, 7);
    EXPECT_FALSE(one.covers(two));
    EXPECT_TRUE(one.join(two));
    EXPECT_TRUE(one.covers(two));
    EXPECT_EQ(one[0], 5U);
    EXPECT_EQ(one[1], 0U);
    EXPECT_EQ(one[2], 7U);
    EXPECT_EQ(one[9], 0U);
    EXPECT_FALSE(one.join(two));
}

TEST(Timelines, AreReusedAfterTheHostSawTheirEnd) {
    Timelines timelines;
    VectorClock host;
    EXPECT_EQ(timelines.take(host).number, 0U);
    EXPECT_EQ(timelines.take(host).number, 1U);
    timelines.give({0, 4});
    EXPECT_EQ(timelines.take(host).number, 2U);
    host.raise(0, 4);
    const Timeline again = timelines.take(host);
    EXPECT_EQ(again.number, 0U);
    EXPECT_EQ(again.tick, 4U);
}

}  // namespace
}  // namespace tensorpool::device
