#include <tensorpool/serve_scope.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/detail/address_range.hpp>
#include <tensorpool/pooled_array.hpp>

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = kib * kib;

MemoryPool& pool() {
    return get_global_memory_pool();
}

// One iteration of a loop that knows nothing of the arena: each buffer ends before the next but one
// begins, so a plan needs room for two.
void step(std::size_t count = 4, std::size_t bytes = mib) {
    void* before = nullptr;
    for (std::size_t made = 0; made != count; ++made) {
        void* const block = pool().allocate(bytes);
        std::memset(block, static_cast<int>(made), bytes);
        pool().deallocate(before, bytes);
        before = block;
    }
    pool().deallocate(before, bytes);
}

void iterate(PlannedArena& arena, std::size_t count = 4, std::size_t bytes = mib) {
    const ServeScope serve(arena);
    step(count, bytes);
}

TEST(ServeScope, ServesRequestsOfTheGlobalPoolFromAPlan) {
    PlannedArena arena;
    iterate(arena);
    EXPECT_EQ(arena.statistics().from_pool, 4U);
    EXPECT_EQ(arena.statistics().plan_peak_bytes, 2 * mib) << "frees were not noted";
    const PoolStatistics before = pool().statistics();
    iterate(arena);
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.served, 4U);
    EXPECT_EQ(statistics.from_pool, 4U);
    EXPECT_EQ(statistics.in_use_bytes, 0U);
    EXPECT_EQ(statistics.pool_in_use_bytes, 0U);
    EXPECT_EQ(pool().statistics().allocations, before.allocations) << "counted twice";
    EXPECT_EQ(pool().statistics().deallocations, before.deallocations);
}

TEST(ServeScope, CountsABlockOfThePlanInTheArenaOnly) {
    PlannedArena arena;
    iterate(arena, 1);
    const std::size_t before = pool().get_total_allocated();
    const ServeScope serve(arena);
    const PooledAllocation block(pool(), mib);
    EXPECT_EQ(arena.statistics().in_use_bytes, mib);
    EXPECT_EQ(pool().get_total_allocated(), before);
}

TEST(ServeScope, LeavesSmallerRequestsToThePool) {
    PlannedArena arena;
    for (int iteration = 0; iteration != 3; ++iteration) {
        const ServeScope serve(arena, 2 * mib);
        const PooledAllocation small(pool(), 1000);
        const PooledAllocation below(pool(), 2 * mib - 1);
        const PooledAllocation above(pool(), 2 * mib);
    }
    EXPECT_EQ(arena.statistics().from_pool, 1U);
    EXPECT_EQ(arena.statistics().served, 2U);
}

TEST(ServeScope, LeavesOtherPoolsAlone) {
    PlannedArena arena;
    MemoryPool other;
    for (int iteration = 0; iteration != 2; ++iteration) {
        const ServeScope serve(arena);
        const PooledAllocation block(other, mib);
        EXPECT_TRUE(other.owns(block.get()));
    }
    EXPECT_EQ(arena.statistics().from_pool + arena.statistics().served, 0U);
}

TEST(ServeScope, ServesEveryKindOfRequest) {
    PlannedArena arena;
    for (int iteration = 0; iteration != 2; ++iteration) {
        const ServeScope serve(arena);
        void* const blocks[] = {pool().allocate(mib),
                                pool().allocate(mib, 4096),
                                pool().try_allocate(mib),
                                pool().try_allocate(mib, 2 * mib),
                                pool().allocate_prefaulted(mib),
                                pool().allocate_zeroed(mib, 1),
                                pool().try_allocate_zeroed(1, mib)};
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks[3]) % (2 * mib), 0U);
        const auto is_zero = [](const void* block) {
            const auto* const bytes = static_cast<const char*>(block);
            return std::all_of(bytes, bytes + mib, [](char byte) { return byte == 0; });
        };
        EXPECT_TRUE(is_zero(blocks[5]) && is_zero(blocks[6]));
        for (void* const block : blocks) std::memset(block, 1, mib);
        pool().deallocate(blocks[0], mib);
        pool().deallocate(blocks[1], mib, 4096);
        pool().deallocate(blocks[3], mib, 2 * mib);
        for (int rest : {2, 4, 5, 6}) pool().deallocate(blocks[rest]);
    }
    EXPECT_EQ(arena.statistics().served, 7U);
    EXPECT_EQ(arena.statistics().in_use_bytes, 0U);
}

TEST(ServeScope, BlocksOfThePlanAreBlocksOfTheGlobalPool) {
    PlannedArena arena;
    iterate(arena, 1, mib + 5);
    const ServeScope serve(arena);
    auto* const block = static_cast<char*>(pool().allocate(mib + 5));
    EXPECT_EQ(arena.statistics().served, 1U);
    EXPECT_TRUE(detail::pool_addresses.contains(block));
    EXPECT_TRUE(detail::lies_in_a_pool(block));
    EXPECT_TRUE(pool().owns(block));
    EXPECT_TRUE(pool().owns(block + mib));
    EXPECT_EQ(pool().usable_size(block), mib + 64);
    EXPECT_EQ(detail::bytes_of_block_in_use(block), mib + 64);
    EXPECT_EQ(pool().usable_size(block + 64), 0U);
    MemoryPool other;
    EXPECT_FALSE(other.owns(block));
    EXPECT_EQ(other.usable_size(block), 0U);
    pool().deallocate(block);
    EXPECT_FALSE(pool().owns(block));
    EXPECT_EQ(pool().usable_size(block), 0U);
}

TEST(ServeScope, ReallocatesBlocksOfThePlan) {
    PlannedArena arena;
    for (int iteration = 0; iteration != 3; ++iteration) {
        const ServeScope serve(arena);
        auto* block = static_cast<char*>(pool().allocate(mib));
        std::memset(block, 7, mib);
        auto* const same = static_cast<char*>(pool().reallocate(block, mib, mib - 100));
        EXPECT_EQ(same, block);
        block = static_cast<char*>(pool().reallocate(same, mib - 100, 3 * mib));
        EXPECT_TRUE(block[0] == 7 && block[mib - 101] == 7);
        block = static_cast<char*>(pool().reallocate(block, 3 * mib, 1000));
        EXPECT_TRUE(block[0] == 7 && block[999] == 7);
        pool().deallocate(block, 1000);
    }
    EXPECT_EQ(arena.statistics().served, 4U);
    EXPECT_EQ(arena.statistics().in_use_bytes + arena.statistics().pool_in_use_bytes, 0U);
}

TEST(ServeScope, AnyThreadFreesABlock) {
    PlannedArena arena;
    for (int iteration = 0; iteration != 3; ++iteration) {
        const ServeScope serve(arena);
        void* const first = pool().allocate(mib);
        std::thread([&] { pool().deallocate(first, mib); }).join();
        void* const second = pool().allocate(mib);
        std::thread([&] { pool().deallocate(second); }).join();
    }
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.served, 4U);
    EXPECT_EQ(statistics.plan_peak_bytes, mib);
    EXPECT_EQ(statistics.in_use_bytes + statistics.pool_in_use_bytes, 0U);
}

TEST(ServeScope, OtherThreadsStayWithThePool) {
    PlannedArena arena;
    for (int iteration = 0; iteration != 2; ++iteration) {
        const ServeScope serve(arena);
        const PooledAllocation own(pool(), mib);
        std::thread([] { step(); }).join();
    }
    EXPECT_EQ(arena.statistics().from_pool, 1U);
    EXPECT_EQ(arena.statistics().served, 1U);
}

TEST(ServeScope, AThreadThatJoinsIsServedFromTheSamePlan) {
    PlannedArena arena;
    for (int iteration = 0; iteration != 3; ++iteration) {
        const ServeScope serve(arena);
        void* const forward = pool().allocate(2 * mib);
        std::thread([&] {
            const JoinServeScope joined(serve);
            const PooledAllocation gradient(pool(), 3 * mib);
            pool().deallocate(forward);
        }).join();
        const PooledAllocation update(pool(), mib);
    }
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.from_pool, 3U);
    EXPECT_EQ(statistics.served, 6U);
    EXPECT_EQ(statistics.plan_peak_bytes, 5 * mib);
}

TEST(ServeScope, JoinedThreadsThatCompeteGetBlocksThatDoNotOverlap) {
    PlannedArena arena;
    for (int iteration = 0; iteration != 20; ++iteration) {
        const ServeScope serve(arena);
        const auto work = [&](unsigned char stamp) {
            const JoinServeScope joined(serve);
            for (std::size_t made = 0; made != 10; ++made) {
                const std::size_t bytes = 100 * kib * (1 + made % 3);
                auto* const block = static_cast<unsigned char*>(pool().allocate(bytes));
                std::memset(block, stamp, bytes);
                const bool is_kept = std::all_of(block, block + bytes,
                                                 [&](unsigned char byte) { return byte == stamp; });
                EXPECT_TRUE(is_kept) << "another thread wrote into the block";
                pool().deallocate(block);
            }
        };
        std::thread one(work, 1);
        std::thread two(work, 2);
        one.join();
        two.join();
    }
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.in_use_bytes + statistics.pool_in_use_bytes, 0U);
    EXPECT_EQ(statistics.served + statistics.from_pool, 400U);
}

TEST(ServeScope, TheInnermostScopeServes) {
    PlannedArena outer;
    PlannedArena inner;
    for (int iteration = 0; iteration != 2; ++iteration) {
        const ServeScope serve(outer);
        const PooledAllocation first(pool(), mib);
        {
            const ServeScope nested(inner);
            const PooledAllocation second(pool(), mib);
        }
        const PooledAllocation third(pool(), mib);
    }
    EXPECT_EQ(outer.statistics().served, 2U);
    EXPECT_EQ(inner.statistics().served, 1U);
}

TEST(ServeScope, WhilePausedThePoolServesAndTheIterationGoesOn) {
    PlannedArena arena;
    iterate(arena);
    ServeScope serve(arena);
    step(2);
    serve.pause();
    serve.pause();
    step();
    serve.resume();
    serve.resume();
    step(2);
    EXPECT_EQ(arena.statistics().served, 4U);
    EXPECT_EQ(arena.statistics().from_pool, 4U) << "of the iteration that learned";
}

TEST(ServeScope, APausedScopeGoesOnAndEndsOnAnotherThread) {
    PlannedArena arena;
    iterate(arena);
    auto serve = std::make_unique<ServeScope>(arena);
    step(2);
    serve->pause();
    std::thread([&] {
        serve->resume();
        step(2);
        serve->pause();
    }).join();
    EXPECT_EQ(arena.statistics().served, 4U);
    std::thread([&] {
        serve = nullptr;
        step();
    }).join();
    step();
    EXPECT_EQ(arena.statistics().served, 4U);
    EXPECT_EQ(arena.statistics().iterations, 2U);
    iterate(arena);
    EXPECT_EQ(arena.statistics().served, 8U);
}

TEST(ServeScope, ScopesThatPauseAlternate) {
    PlannedArena first;
    PlannedArena second;
    iterate(first);
    iterate(second, 2, 2 * mib);
    ServeScope serve_first(first);
    serve_first.pause();
    ServeScope serve_second(second);
    serve_second.pause();
    for (int turn = 0; turn != 2; ++turn) {
        serve_first.resume();
        step(2);
        serve_first.pause();
        serve_second.resume();
        step(1, 2 * mib);
        serve_second.pause();
    }
    EXPECT_EQ(first.statistics().served, 4U);
    EXPECT_EQ(second.statistics().served, 2U);
}

TEST(ServeScope, ThePlanTakesTheMemoryOfTheLearnedIteration) {
    pool().trim();
    const std::size_t before = pool().get_total_capacity();
    PlannedArena arena;
    {
        const ServeScope serve(arena);
        step(8, 16 * mib);
        EXPECT_GE(pool().get_total_capacity(), before + 32 * mib);
    }
    EXPECT_EQ(arena.statistics().plans, 1U);
    EXPECT_EQ(arena.statistics().capacity_bytes, 32 * mib);
    EXPECT_LE(pool().get_total_capacity(), before + mib);
}

TEST(ServeScope, ALargeRequestBetweenIterationsGetsTheMemoryOfThePlan) {
    PlannedArena arena;
    iterate(arena, 4, 16 * mib);
    pool().trim();
    iterate(arena, 4, 16 * mib);
    const std::size_t before = pool().get_total_capacity();
    {
        const PooledAllocation small(pool(), mib);
        EXPECT_EQ(arena.statistics().capacity_bytes, 32 * mib) << "the plan gave way to little";
        const PooledAllocation large(pool(), 30 * mib);
        EXPECT_EQ(arena.statistics().capacity_bytes, 0U);
        EXPECT_LE(pool().get_total_capacity(), before + 36 * mib);
        iterate(arena, 4, 16 * mib);
    }
    iterate(arena, 4, 16 * mib);
    EXPECT_EQ(arena.statistics().served, 12U);
}

TEST(ServeScope, LoopsThatAlternateShareTheirMemory) {
    pool().trim();
    const std::size_t before = pool().get_total_capacity();
    PlannedArena one;
    PlannedArena two;
    for (int iteration = 0; iteration != 4; ++iteration) {
        iterate(one, 4, 16 * mib);
        iterate(two, 4, 20 * mib);
    }
    EXPECT_EQ(one.statistics().served + two.statistics().served, 24U);
    const std::size_t held = pool().get_total_capacity() + one.statistics().capacity_bytes +
                             two.statistics().capacity_bytes;
    EXPECT_LE(held, before + 48 * mib) << "each has memory of its own";
}

TEST(ServeScope, WithoutMemoryForThePlanThePoolServesTheIteration) {
    PlannedArena arena;
    iterate(arena, 4, 16 * mib);
    iterate(arena, 4, 16 * mib);
    pool().trim();
    EXPECT_EQ(arena.statistics().capacity_bytes, 0U);
    pool().set_max_capacity(pool().get_total_capacity() + 20 * mib);
    iterate(arena, 4, 8 * mib);
    const PlannedArenaStatistics without = arena.statistics();
    pool().set_max_capacity(0);
    EXPECT_EQ(without.served, 4U);
    EXPECT_EQ(without.from_pool, 8U);
    EXPECT_EQ(without.capacity_bytes, 0U);
    iterate(arena, 4, 16 * mib);
    EXPECT_EQ(arena.statistics().served, 8U);
}

TEST(ServeScope, BlocksOfAPlanOverAnotherPoolBelongToTheArenaAlone) {
    MemoryPool other;
    PlannedArena arena({.pool = &other});
    for (int iteration = 0; iteration != 2; ++iteration) {
        const IterationScope scope(arena);
        const PooledAllocation block(arena, mib);
        if (iteration == 0) continue;
        EXPECT_FALSE(other.owns(block.get()) || pool().owns(block.get()));
        EXPECT_EQ(other.usable_size(block.get()), 0U);
        EXPECT_EQ(pool().usable_size(block.get()), 0U);
    }
    EXPECT_EQ(arena.statistics().served, 1U);
}

TEST(ServeScope, TrimReturnsTheMemoryOfAnIdlePlan) {
    PlannedArena arena;
    iterate(arena);
    iterate(arena);
    EXPECT_EQ(arena.statistics().capacity_bytes, 2 * mib);
    pool().trim();
    EXPECT_EQ(arena.statistics().capacity_bytes, 0U);
    iterate(arena);
    EXPECT_EQ(arena.statistics().served, 8U);
}

TEST(ServeScope, BlocksOutliveTheScopeAndTheArena) {
    auto arena = std::make_unique<PlannedArena>();
    iterate(*arena, 2);
    void* learned = nullptr;
    void* planned = nullptr;
    {
        const ServeScope serve(*arena);
        planned = pool().allocate(mib);
        learned = pool().allocate(5 * mib);  // not in the plan
        EXPECT_EQ(arena->statistics().served, 1U);
    }
    std::memset(planned, 3, mib);
    arena = nullptr;
    EXPECT_TRUE(pool().owns(planned));
    EXPECT_TRUE(pool().owns(learned));
    std::memset(planned, 4, mib);
    pool().deallocate(learned);
    EXPECT_FALSE(pool().owns(learned));
    pool().deallocate(planned, mib);
    EXPECT_EQ(detail::plan_tables_at(planned), nullptr) << "the plan is still there";
}

TEST(ServeScope, ThePlansOfADestroyedArenaAreReleasedByWhicheverThreadFreesLast) {
    for (int round = 0; round != 50; ++round) {
        auto arena = std::make_unique<PlannedArena>();
        const auto allocate = [&] {
            const ServeScope serve(*arena);
            return std::pair(pool().allocate(mib), pool().allocate(mib));
        };
        const auto learned = allocate();
        pool().deallocate(learned.first);
        pool().deallocate(learned.second);
        {
            const ServeScope serve(*arena);
            step(2);
        }
        const auto held = allocate();
        std::thread one([block = held.first] { pool().deallocate(block); });
        std::thread two([block = held.second] { pool().deallocate(block); });
        arena = nullptr;
        one.join();
        two.join();
        EXPECT_FALSE(pool().owns(held.first) || pool().owns(held.second));
        EXPECT_EQ(detail::plan_tables_at(held.first), nullptr) << "the plan is still there";
    }
}

TEST(ServeScope, RequestsInAnotherOrderOrSizeAreServedByThePool) {
    PlannedArena arena;
    iterate(arena, 3);
    {
        const ServeScope serve(arena);
        const PooledAllocation larger(pool(), 4 * mib);
        const PooledAllocation first(pool(), mib);
    }
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.pool_in_use_bytes, 0U);
    EXPECT_EQ(statistics.served + statistics.from_pool, 3U + 2U);
    EXPECT_GE(statistics.from_pool, 4U);
}

TEST(ServeScope, RefusedRequestLeavesTheSequenceUnchanged) {
    PlannedArena arena;
    iterate(arena, 2);
    {
        const ServeScope serve(arena);
        EXPECT_THROW(static_cast<void>(pool().allocate(SIZE_MAX / 2)), AllocationError);
        EXPECT_EQ(pool().try_allocate(SIZE_MAX / 2), nullptr);
        step(2);
    }
    EXPECT_EQ(arena.statistics().served, 2U);
}

TEST(ServeScope, TheLargestRequestOfAllIsRefusedWithAndWithoutAScope) {
    EXPECT_EQ(pool().try_allocate(SIZE_MAX), nullptr);
    PlannedArena arena;
    const ServeScope serve(arena, SIZE_MAX);
    EXPECT_EQ(pool().try_allocate(SIZE_MAX), nullptr);
}

TEST(ServeScope, RejectsAThresholdThatSmallBlocksWouldReach) {
    PlannedArena arena({.name = "step"});
    try {
        const ServeScope serve(arena, 64 * kib);
        FAIL() << "expected std::invalid_argument";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: planned arena 'step': serve: min_bytes is 65536 B; expected at "
                     "least 65537 B");
    }
}

TEST(ServeScope, RejectsAnArenaOverAnotherPool) {
    PoolOptions options;
    options.name = "mine";
    MemoryPool other(options);
    PlannedArena arena({.name = "step", .pool = &other});
    try {
        const ServeScope serve(arena);
        FAIL() << "expected std::invalid_argument";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: planned arena 'step': serve: the arena's pool is 'mine'; "
                     "expected the global pool");
    }
}

TEST(ServeScope, RejectsAnArenaWhoseIterationIsUnderWay) {
    PlannedArena arena;
    const ServeScope serve(arena);
    EXPECT_THROW(const ServeScope again(arena), std::logic_error);
    const PooledAllocation block(pool(), mib);
    EXPECT_EQ(arena.statistics().from_pool, 1U) << "the first scope ended";
}

TEST(ServeScopeDeathTest, ADoubleFreeOfABlockOfThePlanStopsTheProgram) {
    PlannedArena arena;
    iterate(arena, 1);
    const ServeScope serve(arena);
    void* const block = pool().allocate(mib);
    pool().deallocate(block, mib);
    EXPECT_DEATH(pool().deallocate(block, mib), "was freed twice or was never allocated");
    EXPECT_DEATH(pool().deallocate(static_cast<char*>(block) + 64), "was freed twice or was never");
}

TEST(ServeScopeDeathTest, AFreeWithinABlockOfThePlanStopsTheProgram) {
    PlannedArena arena;
    iterate(arena, 1);
    const ServeScope serve(arena);
    const PooledAllocation block(pool(), mib);
    EXPECT_DEATH(pool().deallocate(static_cast<char*>(block.get()) + 64), "lies 64 B inside");
}

// The other style forks, which takes the locks of both pools: more than the 64 that
// ThreadSanitizer follows.
TEST(ServeScopeDeathTest, AFreeToAnotherPoolStopsTheProgram) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    PlannedArena arena;
    iterate(arena, 1);
    const ServeScope serve(arena);
    const PooledAllocation block(pool(), mib);
    MemoryPool other;
    EXPECT_DEATH(other.deallocate(block.get()),
                 "lies in pool 'global'; expected a block of this pool");
}

}  // namespace
}  // namespace tensorpool
