#include "platform/memory/numa_linux.hpp"

#include <gtest/gtest.h>

namespace tensorpool::platform {
namespace {

TEST(NumaNodes, OneNodeIsOne) {
    EXPECT_EQ(count_numa_nodes("0"), 1U);
}

TEST(NumaNodes, RangeCountsToItsEnd) {
    EXPECT_EQ(count_numa_nodes("0-3"), 4U);
}

TEST(NumaNodes, MissingNodesCountToo) {
    EXPECT_EQ(count_numa_nodes("0-1,4,8"), 9U);
}

TEST(NumaNodes, WhatIsNoListIsOneNode) {
    EXPECT_EQ(count_numa_nodes(""), 1U);
    EXPECT_EQ(count_numa_nodes("none"), 1U);
    EXPECT_EQ(count_numa_nodes("0-"), 1U);
}

TEST(NumaNodes, NumbersBeyondTheKernelsMostAreCutToIt) {
    EXPECT_EQ(count_numa_nodes("0-1023"), max_numa_nodes);
    EXPECT_EQ(count_numa_nodes("0-99999"), max_numa_nodes);
}

}  // namespace
}  // namespace tensorpool::platform
