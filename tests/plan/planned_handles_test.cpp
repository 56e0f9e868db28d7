// Handles that own blocks of a planned arena.

#include <tensorpool/pooled_allocation.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/planned_arena.hpp>
#include <tensorpool/pooled_array.hpp>

namespace tensorpool {
namespace {

static_assert(MemorySource<PlannedArena> && !ReleasingSource<PlannedArena>);

TEST(PlannedHandle, BlocksOfThePlanAreHeldUntilTheHandleEnds) {
    MemoryPool pool;
    PlannedArena arena({.pool = &pool});
    for (int iteration = 0; iteration < 4; ++iteration) {
        const IterationScope scope(arena);
        PooledAllocation first(arena, 1000);
        PooledAllocation second(arena, 5000, 4096);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.get()) % 4096, 0U);
        first = PooledAllocation();
        const PooledArray<float> third(arena, 100);
        second.swap(first);
        EXPECT_EQ(arena.statistics().in_use_bytes + arena.statistics().pool_in_use_bytes > 0, true);
    }
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.served, 9U);
    EXPECT_EQ(statistics.from_pool, 3U);
    EXPECT_EQ(statistics.in_use_bytes, 0U);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PlannedHandle, EndsOnAnyThread) {
    MemoryPool pool;
    PlannedArena arena({.pool = &pool});
    for (int iteration = 0; iteration < 3; ++iteration) {
        const IterationScope scope(arena);
        PooledAllocation first(arena, 100'000);
        PooledAllocation second(arena, 100'000);
        std::thread([moved = std::move(first)] {}).join();
        std::thread([&] { second.reset(); }).join();
    }
    EXPECT_EQ(arena.statistics().served, 4U);
    EXPECT_EQ(arena.statistics().in_use_bytes, 0U);
}

TEST(PlannedHandle, HeldBeyondItsIterationIsServedByThePoolNextTime) {
    MemoryPool pool;
    PlannedArena arena({.pool = &pool});
    PooledAllocation kept;
    for (int iteration = 0; iteration < 4; ++iteration) {
        const IterationScope scope(arena);
        PooledAllocation fresh(arena, 1000);
        EXPECT_NE(fresh.get(), kept.get());
        kept = std::move(fresh);
    }
    EXPECT_TRUE(pool.owns(kept.get()));
}

}  // namespace
}  // namespace tensorpool
