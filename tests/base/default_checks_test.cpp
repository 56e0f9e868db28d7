#include <gtest/gtest.h>

#include <tensorpool/pool_options.hpp>

namespace tensorpool {
namespace {

TEST(DefaultChecks, BasicInDebugBuildsAndOffOtherwise) {
#ifdef NDEBUG
    EXPECT_EQ(default_checks(), Checks::off);
#else
    EXPECT_EQ(default_checks(), Checks::basic);
#endif
}

TEST(DefaultChecks, AreDefaultOfPoolOptions) {
    EXPECT_EQ(PoolOptions().checks, default_checks());
}

}  // namespace
}  // namespace tensorpool
