// Planned arenas that charge the memory of their plans to a budget.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/planned_arena.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/serve_scope.hpp>

#include "limits/charged.hpp"
#include "plan/arena_tools.hpp"
#include "support/child_process.hpp"

namespace tensorpool::planned {
namespace {

using testing::iterate;

constexpr std::size_t mib = std::size_t{1} << 20;

PlannedArenaOptions options_with(Budget& budget, MemoryPool& pool) {
    PlannedArenaOptions options;
    options.pool = &pool;
    options.budget = &budget;
    return options;
}

TEST(PlannedBudget, ChargeIsTheMemoryOfThePlan) {
    Budget process("process");
    Budget budget(process, "planned");
    MemoryPool pool;
    {
        PlannedArena arena(options_with(budget, pool));
        EXPECT_EQ(budget.in_use(), 0U);
        iterate(arena, {mib, 2 * mib});
        EXPECT_EQ(budget.in_use(), 3 * mib);
        iterate(arena, {mib, 2 * mib});
        EXPECT_EQ(arena.statistics().served, 2U);
        EXPECT_EQ(arena.statistics().capacity_bytes, 3 * mib);
        EXPECT_EQ(process.in_use(), 3 * mib);
        arena.relearn();
        EXPECT_EQ(budget.in_use(), 0U);
        iterate(arena, {mib});
        EXPECT_EQ(budget.in_use(), mib);
    }
    EXPECT_EQ(process.in_use(), 0U);
}

// One loop that knows nothing of the arena.
void serve(PlannedArena& arena, std::size_t bytes) {
    const ServeScope scope(arena);
    const PooledAllocation block(bytes);
}

TEST(PlannedBudget, ScopeRefusesWhatAPlanMadeBeforeWouldServe) {
    Budget loader("loader", {.hard = 16 * mib});
    PlannedArena arena;
    serve(arena, 40 * mib);
    serve(arena, 40 * mib);
    EXPECT_EQ(arena.statistics().served, 1U);
    const BudgetScope scope(loader);
    EXPECT_THROW(serve(arena, 40 * mib), AllocationError);
    EXPECT_EQ(arena.statistics().served, 1U);
    EXPECT_EQ(loader.in_use(), 0U);
}

TEST(PlannedBudget, PlanIsChargedToTheScopeInWhichTheIterationBegins) {
    Budget process("process");
    Budget one(process, "one");
    Budget other(process, "other");
    PlannedArena arena;
    serve(arena, 4 * mib);
    for (Budget* const budget : {&one, &other, &one}) {
        const BudgetScope scope(*budget);
        serve(arena, 4 * mib);
        EXPECT_EQ(budget->in_use(), 4 * mib);
        EXPECT_EQ(process.in_use(), 4 * mib) << "the charge moved";
    }
    EXPECT_EQ(arena.statistics().served, 3U);
    serve(arena, 4 * mib);
    EXPECT_EQ(process.in_use(), 0U) << "outside of any scope";
}

TEST(PlannedBudget, ChargeThatMovesStaysWithinTheLimitOfBothAbove) {
    Budget process("process", {.hard = 5 * mib});
    Budget one(process, "one");
    Budget other(process, "other");
    Budget small(process, "small", {.hard = mib});
    PlannedArena arena;
    serve(arena, 4 * mib);
    for (Budget* const budget : {&one, &other}) {
        const BudgetScope scope(*budget);
        serve(arena, 4 * mib);
    }
    EXPECT_EQ(arena.statistics().served, 2U);
    EXPECT_EQ(process.statistics().peak_bytes, 4 * mib);
    EXPECT_EQ(process.statistics().refusals, 0U);
    const BudgetScope scope(small);
    EXPECT_THROW(serve(arena, 4 * mib), AllocationError);
    EXPECT_EQ(process.in_use(), 0U) << "the plan's memory is in no use";
}

TEST(PlannedBudget, ChildOfAForkMayEndTheArenaOfAnotherThreadsScope) {
    auto arena = std::make_unique<PlannedArena>();
    std::atomic<int> stage = 0;
    std::thread other([&] {
        const ServeScope scope(*arena);
        stage = 1;
        while (stage != 2) std::this_thread::yield();
    });
    while (stage != 1) std::this_thread::yield();
    EXPECT_TRUE(tensorpool::testing::holds_in_child([&] {
        arena.reset();
        return true;
    }));
    stage = 2;
    other.join();
}

TEST(PlannedArenaDeathTest, StaticArenaMayEndWithTheProcessInItsServeScope) {
    EXPECT_EXIT(
        {
            static PlannedArena arena;
            const ServeScope scope(arena);
            std::exit(3);
        },
        ::testing::ExitedWithCode(3), "");
}

TEST(PlannedBudget, RequestsInAnInnerScopeAreChargedToIt) {
    Budget inner("inner");
    PlannedArena arena;
    for (std::uint64_t round = 0; round < 4; ++round) {
        const ServeScope serve(arena);
        const PooledAllocation before(mib);
        {
            const BudgetScope scope(inner);
            const PooledAllocation block(2 * mib);
            EXPECT_EQ(inner.in_use(), 2 * mib);
        }
        const PooledAllocation after(mib);
        EXPECT_EQ(inner.in_use(), 0U);
        EXPECT_EQ(arena.statistics().served, 2 * round);
    }
    EXPECT_EQ(arena.statistics().plan_peak_bytes, 2 * mib);
    EXPECT_EQ(arena.statistics().plans, 1U);
}

TEST(PlannedBudget, ThreadsThatJoinAreServedOutsideOfTheScope) {
    Budget budget("loop");
    PlannedArena arena;
    for (std::uint64_t round = 0; round < 3; ++round) {
        const BudgetScope scope(budget);
        const ServeScope serve(arena);
        std::thread([&] {
            const JoinServeScope joined(serve);
            const PooledAllocation block(mib);
        }).join();
        EXPECT_EQ(arena.statistics().served, round);
        EXPECT_EQ(budget.in_use(), round == 0 ? 0 : mib);
    }
}

TEST(PlannedArenaDeathTest, EndInsideItsServeScopeStopsTheProgram) {
    EXPECT_DEATH(
        {
            auto arena = std::make_unique<PlannedArena>(PlannedArenaOptions{.name = "step"});
            const ServeScope scope(*arena);
            arena.reset();
        },
        "fatal: outlived-owner.*\n.*planned arena 'step' ended inside its ServeScope");
}

TEST(PlannedBudget, RetiredPlanStaysChargedUntilItsLastBlockIsFreed) {
    Budget budget("planned");
    MemoryPool pool;
    PlannedArena arena(options_with(budget, pool));
    iterate(arena, {mib, mib});
    arena.begin_iteration();
    void* const block = arena.allocate(mib);
    arena.end_iteration();
    arena.relearn();
    EXPECT_EQ(budget.in_use(), 2 * mib);
    arena.deallocate(block);
    arena.begin_iteration();
    EXPECT_EQ(budget.in_use(), 0U);
    arena.end_iteration();
}

TEST(PlannedBudget, ThePoolServesIfTheBudgetRefuses) {
    Budget budget("planned", {.hard = mib});
    MemoryPool pool;
    PlannedArena arena(options_with(budget, pool));
    for (int i = 0; i != 3; ++i) iterate(arena, {mib, mib});
    EXPECT_EQ(arena.statistics().served, 0U);
    EXPECT_EQ(arena.statistics().from_pool, 6U);
    EXPECT_EQ(budget.in_use(), 0U);
    EXPECT_NE(budget.statistics().refusals, 0U);
}

TEST(PlannedBudget, LoadReportsTheLevelsOfARefusal) {
    MemoryPool pool;
    Budget unlimited("unlimited");
    PlannedArena learned(options_with(unlimited, pool));
    iterate(learned, {mib, 2 * mib});
    std::stringstream plan;
    learned.save(plan);
    Budget process("process");
    Budget budget(process, "planned", {.hard = mib});
    PlannedArena arena(options_with(budget, pool));
    try {
        arena.load(plan);
        FAIL();
    } catch (const AllocationError& error) {
        const std::string text = error.what();
        for (const char* const part : {"the budget's hard limit (1 MiB)", "refused by 'planned'",
                                       "'process': 0 B in use of no limit"}) {
            EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
        }
    }
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(PlannedBudget, RefundsIfThePoolRefuses) {
    PoolOptions small;
    small.max_capacity = 2 * mib;
    MemoryPool pool(small);
    MemoryPool other;
    Budget budget("planned");
    PlannedArena learned(options_with(budget, other));
    iterate(learned, {2 * mib, 2 * mib});
    std::stringstream plan;
    learned.save(plan);
    PlannedArena arena(options_with(budget, pool));
    EXPECT_THROW(arena.load(plan), AllocationError);
    EXPECT_EQ(budget.in_use(), 4 * mib) << "what the other arena holds";
}

TEST(PlannedBudget, BudgetMayEndBeforeItsArena) {
    Budget process("process");
    std::optional<Budget> budget(std::in_place, process, "planned", BudgetLimits{.hard = mib});
    MemoryPool pool;
    {
        PlannedArena arena(options_with(*budget, pool));
        budget.reset();
        iterate(arena, {mib, mib});
        EXPECT_EQ(process.in_use(), 2 * mib) << "the limit ended with the budget";
    }
    EXPECT_EQ(process.in_use(), 0U);
}

/// Sets memory of a budget aside, and allocates from the global pool before it gives that.
class Holder : public MemoryHolder {
public:
    explicit Holder(Budget& budget)
        : own_(budget, "own"), reserved_(own_, 2 * mib), there_(budget.add_holder(*this)) {}
    std::size_t available() const noexcept override { return bytes_; }
    std::size_t give(std::size_t) noexcept override {
        MemoryPool& pool = get_global_memory_pool();
        pool.deallocate(pool.try_allocate(mib), mib);
        reserved_.give_back();
        return std::exchange(bytes_, 0);
    }

private:
    std::size_t bytes_ = 2 * mib;
    Budget own_;
    tensorpool::testing::Charged reserved_;
    HolderRegistration there_;
};

TEST(PlannedBudget, HoldersMakeRoomForAPlan) {
    Budget budget("planned", {.hard = 3 * mib});
    Holder holder(budget);
    MemoryPool pool;
    PlannedArena arena(options_with(budget, pool));
    iterate(arena, {mib, mib});
    EXPECT_EQ(budget.in_use(), 2 * mib);
    iterate(arena, {mib, mib});
    EXPECT_EQ(arena.statistics().served, 2U);
}

// The lock of the arena's server is held while the holder is asked.
TEST(PlannedBudget, HolderMayAllocateFromThePoolThatTheArenaServes) {
    Budget budget("planned", {.hard = 3 * mib});
    Holder holder(budget);
    PlannedArena arena(options_with(budget, get_global_memory_pool()));
    for (int i = 0; i != 2; ++i) {
        const ServeScope serve(arena);
        MemoryPool& pool = get_global_memory_pool();
        pool.deallocate(pool.allocate(2 * mib), 2 * mib);
    }
    EXPECT_EQ(budget.in_use(), 2 * mib);
    EXPECT_EQ(arena.statistics().served, 1U);
}

// The holder runs on a thread that another arena's budget asks for, inside the serve scope.
TEST(PlannedBudget, RequestsOfAHolderAreNotServed) {
    Budget budget("planned");
    PlannedArena arena(options_with(budget, get_global_memory_pool()));
    MemoryPool& pool = get_global_memory_pool();
    for (int i = 0; i != 2; ++i) {
        const ServeScope serve(arena);
        pool.deallocate(pool.allocate(mib), mib);
    }
    Budget other("other", {.hard = 2 * mib});
    Holder holder(other);
    {
        const ServeScope serve(arena);
        const tensorpool::testing::Charged more(other, mib);
        pool.deallocate(pool.allocate(mib), mib);
    }
    EXPECT_EQ(arena.statistics().served, 2U);
    EXPECT_EQ(arena.statistics().from_pool, 1U);
}

}  // namespace
}  // namespace tensorpool::planned
