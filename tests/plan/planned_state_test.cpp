// Tests how an arena learns, plans, serves and gives plans up.

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <thread>

#include "limits/commit_budget.hpp"
#include "plan/arena_tools.hpp"

namespace tensorpool {
namespace {

using planned::testing::iterate;
using planned::testing::LateExecutor;
using State = PlannedArenaStatistics::State;

State state_of(const PlannedArena& arena) {
    return arena.statistics().state;
}

TEST(PlannedState, LearnsUntilIterationsAreIdentical) {
    PlannedArena arena({.learn_iterations = 2});
    iterate(arena, {64});
    iterate(arena, {128});
    EXPECT_EQ(state_of(arena), State::learning);
    EXPECT_EQ(arena.statistics().buffers, 1);
    iterate(arena, {128});
    EXPECT_EQ(state_of(arena), State::serving);
}

TEST(PlannedState, IgnoresEmptyIterations) {
    PlannedArena arena;
    iterate(arena, {});
    EXPECT_EQ(state_of(arena), State::learning);
}

TEST(PlannedState, PoolServesBuffersThatOutliveTheirIteration) {
    PlannedArena arena;
    void* kept = nullptr;
    for (int iteration = 0; iteration < 4; ++iteration) {
        const IterationScope scope(arena);
        void* const next = arena.allocate(1000);
        std::memset(next, iteration, 1000);
        if (kept != nullptr) {
            EXPECT_EQ(static_cast<char*>(kept)[999], iteration - 1);
            arena.deallocate(kept);
        }
        kept = next;
        arena.deallocate(arena.allocate(1000));
    }
    arena.deallocate(kept);
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.served, 3);
    EXPECT_EQ(statistics.from_pool, 5);
    EXPECT_EQ(statistics.too_large + statistics.out_of_order + statistics.still_in_use, 0);
}

TEST(PlannedState, ExecutorPlansAndTheNextIterationIsServed) {
    LateExecutor executor;
    PlannedArena arena({.executor = executor.function()});
    iterate(arena, {64, 128});
    EXPECT_EQ(state_of(arena), State::planning);
    iterate(arena, {64, 128});
    EXPECT_EQ(arena.statistics().from_pool, 4);
    arena.begin_iteration();
    std::thread([&] { executor.run_all(); }).join();
    arena.deallocate(arena.allocate(64));
    EXPECT_EQ(arena.statistics().served, 0);
    arena.end_iteration();
    iterate(arena, {64, 128});
    EXPECT_EQ(state_of(arena), State::serving);
    EXPECT_EQ(arena.statistics().served, 2);
}

TEST(PlannedState, ExecutorMayRunTheJobAtOnce) {
    PlannedArena arena({.executor = [](const std::function<void()>& job) { job(); }});
    iterate(arena, {64});
    EXPECT_EQ(state_of(arena), State::serving);
}

TEST(PlannedState, JobMayOutliveTheArena) {
    LateExecutor executor;
    {
        PlannedArena arena({.executor = executor.function()});
        iterate(arena, {64});
    }
    ASSERT_EQ(executor.jobs.size(), 1U);
    const std::size_t before = limits::commit_budget().committed();
    executor.run_all();
    EXPECT_EQ(limits::commit_budget().committed(), before) << "the plan is used by nothing";
}

TEST(PlannedState, ObsoleteJobHasNoEffect) {
    LateExecutor executor;
    PlannedArena arena({.executor = executor.function()});
    iterate(arena, {64});
    arena.relearn();
    EXPECT_EQ(state_of(arena), State::learning);
    executor.run_all();
    iterate(arena, {128});
    EXPECT_EQ(state_of(arena), State::planning);
    executor.run_all();
    iterate(arena, {128});
    EXPECT_EQ(arena.statistics().served, 1);
}

TEST(PlannedState, DroppedJobIsSubmittedAgain) {
    LateExecutor executor;
    PlannedArena arena({.executor = executor.function()});
    iterate(arena, {64});
    executor.jobs.clear();
    iterate(arena, {64});
    EXPECT_EQ(state_of(arena), State::planning);
    executor.run_all();
    iterate(arena, {64});
    EXPECT_EQ(arena.statistics().served, 1);
}

TEST(PlannedState, PoolServesIfTheExecutorThrows) {
    PlannedArena arena({.executor = [](const auto&) { throw std::runtime_error("full"); }});
    for (int i = 0; i < 10; ++i) iterate(arena, {64});
    EXPECT_EQ(state_of(arena), State::learning);
    EXPECT_EQ(arena.statistics().from_pool, 10);
}

TEST(PlannedState, LastingDriftLeadsToAnotherPlan) {
    PlannedArena arena({.drift_iterations = 3});
    iterate(arena, {64, 128, 256});
    for (int i = 0; i < 3; ++i) iterate(arena, {640, 1280});
    EXPECT_EQ(state_of(arena), State::learning);
    iterate(arena, {640, 1280});
    EXPECT_EQ(state_of(arena), State::serving);
    EXPECT_EQ(arena.statistics().plans, 2);
    iterate(arena, {640, 1280});
    EXPECT_EQ(arena.statistics().served, 2);
    EXPECT_EQ(arena.statistics().plan_peak_bytes, 640 + 1280);
}

TEST(PlannedState, ToleratesSingleDriftingIterations) {
    PlannedArena arena({.drift_iterations = 2});
    iterate(arena, {64, 128});
    for (int i = 0; i < 5; ++i) {
        iterate(arena, {640, 1280});
        iterate(arena, {64, 128});
    }
    EXPECT_EQ(state_of(arena), State::serving);
    EXPECT_EQ(arena.statistics().plans, 1);
}

TEST(PlannedState, RetiredPlanStaysUntilItsLastBlockIsFreed) {
    PlannedArena arena({.drift_iterations = 1});
    iterate(arena, {64, 128});
    arena.begin_iteration();
    void* const kept = arena.allocate(64);
    std::memset(kept, 5, 64);
    arena.deallocate(arena.allocate(9999));
    arena.deallocate(arena.allocate(9999));
    arena.end_iteration();
    EXPECT_EQ(state_of(arena), State::learning);
    EXPECT_NE(arena.statistics().capacity_bytes, 0);
    EXPECT_EQ(arena.statistics().in_use_bytes, 64);
    iterate(arena, {1000});
    iterate(arena, {1000});
    const std::uint64_t both = arena.statistics().capacity_bytes;
    EXPECT_EQ(static_cast<char*>(kept)[63], 5);
    std::thread([&] { arena.deallocate(kept); }).join();
    EXPECT_EQ(arena.statistics().in_use_bytes, 0);
    iterate(arena, {1000});
    EXPECT_LT(arena.statistics().capacity_bytes, both);
}

TEST(PlannedState, RelearnDropsThePlan) {
    PlannedArena arena;
    iterate(arena, {64});
    arena.relearn();
    EXPECT_EQ(state_of(arena), State::learning);
    EXPECT_EQ(arena.statistics().capacity_bytes, 0);
    iterate(arena, {128});
    iterate(arena, {128});
    EXPECT_EQ(arena.statistics().served, 1);
}

TEST(PlannedState, DestructorReleasesAllMemory) {
    MemoryPool pool;
    const std::size_t before = limits::commit_budget().committed();
    {
        PlannedArena arena({.pool = &pool, .checks = Checks::off});
        iterate(arena, {64, 1 << 20});
        arena.begin_iteration();
        EXPECT_NE(arena.allocate(64), nullptr);
        EXPECT_NE(arena.allocate(2 << 20), nullptr);
    }
    EXPECT_EQ(pool.get_total_allocated(), 0);
    pool.trim();
    EXPECT_LE(limits::commit_budget().committed(), before + pool.get_total_capacity());
}

TEST(PlannedState, FullChecksReportBlocksInUseAtDestruction) {
    EXPECT_EXIT(
        {
            PlannedArena arena({.name = "a", .checks = Checks::full});
            EXPECT_NE(arena.allocate(64), nullptr);
        },
        ::testing::KilledBySignal(SIGABRT),
        "planned arena 'a': destroyed with blocks of 64 B in use; expected none");
}

TEST(PlannedState, LearnsAfterTheWarmUp) {
    MemoryPool pool;
    PlannedArenaOptions options;
    options.pool = &pool;
    options.warm_up_iterations = 1;
    PlannedArena arena(std::move(options));
    void* made_at_first = nullptr;
    for (int iteration = 0; iteration != 4; ++iteration) {
        const IterationScope scope(arena);
        void* const block = arena.allocate(100'000);
        if (iteration == 0) {
            made_at_first = block;
        } else {
            arena.deallocate(block);
        }
    }
    EXPECT_EQ(arena.statistics().from_pool, 2U);
    EXPECT_EQ(arena.statistics().served, 2U) << "the first iteration was learned";
    arena.deallocate(made_at_first);
}

}  // namespace
}  // namespace tensorpool
