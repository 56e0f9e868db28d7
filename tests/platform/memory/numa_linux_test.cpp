#include "platform/files/system_files_linux.hpp"

#include <gtest/gtest.h>

namespace tensorpool::platform {
namespace {

TEST(NumaNodes, SingleNodeCountsOne) {
    EXPECT_EQ(count_numa_nodes("0"), 1U);
}

TEST(NumaNodes, RangeCountsToItsEnd) {
    EXPECT_EQ(count_numa_nodes("0-3"), 4U);
}

TEST(NumaNodes, MissingNodesAreCounted) {
    EXPECT_EQ(count_numa_nodes("0-1,4,8"), 9U);
}

TEST(NumaNodes, InvalidListCountsOne) {
    EXPECT_EQ(count_numa_nodes(""), 1U);
    EXPECT_EQ(count_numa_nodes("none"), 1U);
    EXPECT_EQ(count_numa_nodes("0-"), 1U);
}

TEST(NumaNodes, CountIsLimitedToKernelMaximum) {
    EXPECT_EQ(count_numa_nodes("0-1023"), max_numa_nodes);
    EXPECT_EQ(count_numa_nodes("0-99999"), max_numa_nodes);
}

}  // namespace
}  // namespace tensorpool::platform
