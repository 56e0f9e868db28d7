#include <tensorpool/planned_arena.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tensorpool {
namespace {

using State = PlannedArenaStatistics::State;

TEST(PlannedArena, LearnsOneIterationAndServesTheNext) {
    MemoryPool pool;
    PlannedArena arena({.pool = &pool});
    for (int iteration = 0; iteration < 3; ++iteration) {
        const IterationScope scope(arena);
        void* a = arena.allocate(1000);
        void* b = arena.allocate(5000, 4096);
        std::memset(a, 1, 1000);
        std::memset(b, 2, 5000);
        arena.deallocate(a);
        void* c = arena.allocate(700);
        arena.deallocate(b);
        arena.deallocate(c, 700);
    }
    const PlannedArenaStatistics figures = arena.statistics();
    EXPECT_EQ(figures.state, State::serving);
    EXPECT_EQ(figures.served, 6);
    EXPECT_EQ(figures.from_pool, 3);
    EXPECT_EQ(figures.in_use_bytes, 0);
    EXPECT_EQ(figures.pool_in_use_bytes, 0);
    EXPECT_EQ(figures.lower_bound_bytes, 1024 + 5056);
    EXPECT_EQ(figures.plan_peak_bytes, 1024 + 5056);
    EXPECT_EQ(figures.pool_peak_bytes, 1024 + 8192);
    EXPECT_EQ(pool.get_total_allocated(), 0);
}

}  // namespace
}  // namespace tensorpool
