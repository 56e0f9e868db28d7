#include <gtest/gtest.h>

#include "platform/process/fork_handlers.hpp"
#include "support/child_process.hpp"

namespace tensorpool::platform {
namespace {

int forks_begun = 0;
int forks_in_parent = 0;
int forks_in_child = 0;

// Uses the place that the pool's own library does not set.
TEST(ForkHandlers, CallsHandlersInParentAndChild) {
    ASSERT_TRUE(set_fork_handlers(
        ForkStage::allocator, [] { ++forks_begun; }, [] { ++forks_in_parent; },
        [] { ++forks_in_child; }));
    forks_begun = forks_in_parent = forks_in_child = 0;
    EXPECT_TRUE(testing::holds_in_child(
        [] { return forks_begun == 1 && forks_in_parent == 0 && forks_in_child == 1; }));
    EXPECT_EQ(forks_begun, 1);
    EXPECT_EQ(forks_in_parent, 1);
    EXPECT_EQ(forks_in_child, 0);
}

}  // namespace
}  // namespace tensorpool::platform
