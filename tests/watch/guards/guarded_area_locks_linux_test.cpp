// The calls wait while another thread holds the lock, as it does during a fork.

#include "watch/guards/guarded_area.hpp"

#include <gtest/gtest.h>

#include "support/waits_for_lock_linux.hpp"

namespace tensorpool::watch {
namespace {

TEST(GuardedAreaLocks, CallsWait) {
    constexpr unsigned pool = 77;
    if (!testing::can_see_waits()) GTEST_SKIP() << "/proc does not show what threads wait for";
    GuardedArea& area = guarded_area();
    bool is_there = false;
    EXPECT_TRUE(testing::waits_for(area, [&] { is_there = area.set_up(); }));
    if (!is_there) GTEST_SKIP() << "no addresses for guarded blocks";
    GuardedBlock* block = nullptr;
    EXPECT_TRUE(testing::waits_for(area, [&] { block = area.take(pool, "mine", 10, 64); }));
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(GuardedArea::end_use(*block));
    EXPECT_TRUE(testing::waits_for(area, [&] { area.close(*block); }));
    EXPECT_TRUE(testing::waits_for(area, [&] { area.forget_pool(pool); }));
}

}  // namespace
}  // namespace tensorpool::watch
