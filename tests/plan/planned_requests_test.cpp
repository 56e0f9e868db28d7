// Tests requests and frees that the plan does not serve, and invalid frees.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/wait_until.hpp"

#include "plan/arena_tools.hpp"

namespace tensorpool {
namespace {

using planned::testing::iterate;

/// An arena that serves blocks of 64 and of 128 bytes.
class PlannedRequests : public ::testing::Test {
protected:
    PlannedRequests() { iterate(arena, {64, 128}); }
    void expect_death(void* p, const char* message) {
        EXPECT_EXIT(arena.deallocate(p), ::testing::KilledBySignal(SIGABRT), message);
    }

    MemoryPool pool{PoolOptions{.max_capacity = 64 << 20, .max_allocation = 1 << 20}};
    PlannedArena arena{{.name = "a", .pool = &pool}};
};

TEST_F(PlannedRequests, AreCountedByTheReasonForAMiss) {
    arena.begin_iteration();
    void* const late = arena.allocate(64);
    arena.deallocate(arena.allocate(640));  // too large
    arena.deallocate(arena.allocate(128));
    arena.deallocate(arena.allocate(128));  // unknown
    arena.end_iteration();
    arena.begin_iteration();
    arena.deallocate(arena.allocate(64));  // still in use
    arena.deallocate(late);
    arena.end_iteration();
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.served, 2);
    EXPECT_EQ(statistics.from_pool, 2 + 3);
    EXPECT_EQ(statistics.too_large, 1);
    EXPECT_EQ(statistics.unknown + statistics.out_of_order, 1);
    EXPECT_EQ(statistics.still_in_use, 1);
}

TEST_F(PlannedRequests, FailedRequestChangesNothing) {
    arena.begin_iteration();
    const PlannedArenaStatistics before = arena.statistics();
    EXPECT_THROW(arena.allocate(2 << 20), AllocationError);
    EXPECT_EQ(arena.try_allocate(2 << 20), nullptr);
    EXPECT_EQ(arena.statistics().from_pool, before.from_pool);
    EXPECT_EQ(arena.statistics().pool_in_use_bytes, 0);
    arena.deallocate(arena.allocate(64));
    arena.deallocate(arena.try_allocate(128));
    arena.end_iteration();
    EXPECT_EQ(arena.statistics().served, 2);
}

TEST_F(PlannedRequests, DoubleFreeStopsTheProgram) {
    arena.begin_iteration();
    void* const planned = arena.allocate(64);
    void* const pooled = arena.allocate(1000);
    arena.deallocate(planned);
    arena.deallocate(pooled);
    expect_death(planned,
                 "planned arena 'a': deallocate: 0x[0-9a-f]+ is not a block in use of this");
    expect_death(pooled, "is not a block in use of this arena");
    arena.end_iteration();
}

TEST_F(PlannedRequests, InvalidPointerStopsTheProgram) {
    arena.begin_iteration();
    auto* const block = static_cast<char*>(arena.allocate(64));
    expect_death(block + 1, "is not a block in use");
    expect_death(block + 64, "is not a block in use");
    int local = 0;
    expect_death(&local, "is not a block in use");
    void* const foreign = pool.allocate(64);
    expect_death(foreign, "is not a block in use");
    pool.deallocate(foreign);
    arena.deallocate(block);
    arena.end_iteration();
}

TEST_F(PlannedRequests, DoubleFreeInARetiredPlanStopsTheProgram) {
    arena.begin_iteration();
    void* const one = arena.allocate(64);
    void* const other = arena.allocate(128);
    arena.end_iteration();
    arena.relearn();
    arena.deallocate(one);
    expect_death(one, "is not a block in use");
    arena.deallocate(other);
    expect_death(other, "is not a block in use");
}

TEST_F(PlannedRequests, ChecksStopAllocationByAnotherThread) {
    EXPECT_EXIT(
        {
            PlannedArena checked({.name = "b", .checks = Checks::basic});
            checked.begin_iteration();
            std::thread([&] { checked.allocate(64); }).join();
        },
        ::testing::KilledBySignal(SIGABRT), "planned arena 'b' belongs to the thread that began");
}

TEST_F(PlannedRequests, AnyThreadMayFree) {
    for (int iteration = 0; iteration < 20; ++iteration) {
        arena.begin_iteration();
        std::vector<void*> blocks = {arena.allocate(64), arena.allocate(128), arena.allocate(1000)};
        std::thread([&] {
            for (void* const block : blocks) arena.deallocate(block);
        }).join();
        arena.end_iteration();
    }
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.in_use_bytes, 0);
    EXPECT_EQ(statistics.pool_in_use_bytes, 0);
    EXPECT_EQ(statistics.still_in_use, 0);
}

TEST_F(PlannedRequests, TheLoopMayMoveToAnotherThread) {
    std::thread([&] { iterate(arena, {64, 128}); }).join();
    iterate(arena, {64, 128});
    EXPECT_EQ(arena.statistics().served, 4);
    EXPECT_EQ(arena.statistics().in_use_bytes, 0);
}

// The previous owner still frees blocks while the next owner begins an iteration.
TEST_F(PlannedRequests, StatisticsStayExactWhileTheOwnerChanges) {
    constexpr int rounds = 2000;
    std::atomic<int> turn = 0;
    const auto take_turns = [&](int first) {
        for (int round = first; round < rounds; round += 2) {
            testing::wait_until("the other thread has had its turn",
                                [&] { return turn.load(std::memory_order_acquire) == round; });
            arena.begin_iteration();
            void* blocks[8];
            for (void*& block : blocks) block = arena.allocate(64);
            arena.end_iteration();
            turn.store(round + 1, std::memory_order_release);
            for (void* const block : blocks) arena.deallocate(block);
        }
    };
    std::thread other([&] { take_turns(1); });
    take_turns(0);
    other.join();
    EXPECT_EQ(arena.statistics().in_use_bytes, 0);
    EXPECT_EQ(arena.statistics().pool_in_use_bytes, 0);
}

}  // namespace
}  // namespace tensorpool
