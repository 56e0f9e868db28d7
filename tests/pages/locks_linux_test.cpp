// The calls of each class wait while another thread holds the lock, as it does during a fork.

#include <gtest/gtest.h>

#include "pages/address_space.hpp"
#include "pages/record_arena.hpp"
#include "platform/platform.hpp"
#include "support/waits_for_lock_linux.hpp"
#include "watch/guards/guarded_area.hpp"

namespace tensorpool::pages {
namespace {

using testing::waits_for;

class PagesLocks : public ::testing::Test {
protected:
    void SetUp() override {
        if (!testing::can_see_waits()) GTEST_SKIP() << "/proc does not show what threads wait for";
    }

    static constexpr unsigned pool = 77;
};

TEST_F(PagesLocks, CallsOfTheAddressSpaceWait) {
    (void)watch::guarded_area().set_up();  // before `reserve_guarded` takes its addresses
    AddressSpace& space = address_space();
    PageRun run;
    EXPECT_TRUE(waits_for(space, [&] { run = space.lend(pool, 1, 1, 1, 0); }));
    ASSERT_NE(run.count, 0U);
    ASSERT_TRUE(space.memory().commit({run.first, 2}));
    EXPECT_TRUE(waits_for(space, [&] { space.memory().may_move({run.first, 1}); }));
    EXPECT_TRUE(waits_for(space, [&] { space.memory().move({run.first, 1}, run.first + 1); }));
    if (platform::can_move_memory() && platform::page_bytes() == page_bytes) {
        EXPECT_TRUE(waits_for(space, [&] { space.memory().decommit({run.first + 1, 1}); }));
    }
    EXPECT_TRUE(waits_for(space, [&] { space.take_back(pool, run); }));
    EXPECT_TRUE(waits_for(space, [&] { (void)space.max_alignment(); }));
    EXPECT_TRUE(waits_for(space, [&] { (void)space.first_unguarded(); }));
    EXPECT_TRUE(waits_for(space, [&] { (void)space.reserve_guarded(); }));
}

TEST_F(PagesLocks, RecordArenaWaits) {
    RecordArena arena;
    EXPECT_TRUE(waits_for(arena, [&] { arena.allocate(64, 64); }));
}

}  // namespace
}  // namespace tensorpool::pages
