#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "plan/arena_tools.hpp"
#include "support/child_process.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

using planned::testing::iterate;
using planned::testing::LateExecutor;
using State = PlannedArenaStatistics::State;

TEST(PlannedRegistry, ForkedChildUsesThePlanWithoutAffectingTheParent) {
    PlannedArena arena;
    iterate(arena, {64, 128});
    EXPECT_TRUE(testing::holds_in_child([&] {
        iterate(arena, {64, 128});
        return arena.statistics().served == 2;
    }));
    EXPECT_EQ(arena.statistics().served, 0);
}

TEST(PlannedRegistry, ForkDuringFreesLeavesTheLockUnlocked) {
    PlannedArena arena;
    iterate(arena, {64});
    std::atomic<bool> ends = false;
    std::atomic<void*> handed = nullptr;
    std::thread other([&] {
        while (!ends) arena.deallocate(handed.exchange(nullptr));
    });
    for (int i = 0; i < 20; ++i) {
        arena.begin_iteration();
        testing::wait_until("the other thread has freed the block",
                            [&] { return handed == nullptr; });
        handed = arena.allocate(1000);  // served by the pool
        EXPECT_TRUE(testing::holds_in_child([&] {
            arena.deallocate(arena.allocate(2000));
            arena.end_iteration();
            return true;
        }));
        arena.end_iteration();
    }
    testing::wait_until("the other thread has freed the block", [&] { return handed == nullptr; });
    ends = true;
    other.join();
}

TEST(PlannedRegistry, ForkedChildDropsThePlanningJob) {
    LateExecutor executor;
    PlannedArena arena({.executor = executor.function()});
    iterate(arena, {64});
    EXPECT_TRUE(
        testing::holds_in_child([&] { return arena.statistics().state == State::learning; }));
    EXPECT_EQ(arena.statistics().state, State::planning);
}

}  // namespace
}  // namespace tensorpool
