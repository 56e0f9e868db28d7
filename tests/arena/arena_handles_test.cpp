#include <tensorpool/pooled_allocation.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/context.hpp>
#include <tensorpool/pooled_array.hpp>

#include "arena/arena_test.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
using testing::holds;
using testing::kib;
using testing::message_of;
using testing::write_pattern;

static_assert(MemorySource<Arena> && MemorySource<Context>);
static_assert(ReleasingSource<Arena> && ReleasingSource<Context>);
static_assert(sizeof(PooledAllocation) == 32);

ArenaOptions unchecked() {
    ArenaOptions options = bare_options();
    options.checks = Checks::off;
    return options;
}
ArenaOptions checked() {
    ArenaOptions options = bare_options();
    options.checks = Checks::basic;
    return options;
}

TEST(ArenaHandleDeathTest, ArenaThatEndsBeforeAHandleStopsTheProgram) {
    const auto outlive = [] {
        std::optional<Arena> arena(checked());
        const PooledAllocation handle(*arena, 1000);
        arena.reset();
    };
    EXPECT_EXIT(outlive(), ::testing::KilledBySignal(SIGABRT),
                "^tensorpool: fatal: outlived-owner ptr=0x[^ ]+ size=1024 .*\n"
                "  the end of arena '.*': a handle owns the block of 1024 B at .*; expected the "
                "handle to end before the arena\n");
}

TEST(ArenaHandle, ArenaMayEndAfterItsHandlesOrWithHandlesThatGaveUpTheirBlocks) {
    std::optional<Arena> arena(checked());
    PooledAllocation given_up(*arena, 1000);
    PooledAllocation ended(*arena, 1000);
    ended.reset();
    (void)given_up.release();
    arena.reset();
}

TEST(ArenaHandle, EndReturnsTheBlockAtTheTop) {
    for (const Sharing sharing : {Sharing::any_thread, Sharing::one_thread}) {
        ArenaOptions options = bare_options();
        options.sharing = sharing;
        Arena arena(options);
        arena.allocate(64);
        {
            const PooledAllocation handle(arena, 1000);
            EXPECT_EQ(handle.size(), 1000U);
            EXPECT_EQ(arena.used(), 64U + 1024U);
        }
        EXPECT_EQ(arena.used(), 64U);
        EXPECT_EQ(arena.peak(), 64U + 1024U);
        EXPECT_EQ(arena.statistics().peak_used_bytes, 64U + 1024U);
    }
}

TEST(ArenaHandle, ReverseOrderReturnsAllBlocks) {
    Arena arena(bare_options());
    PooledAllocation first(arena, 100);
    PooledAllocation second(arena, 100);
    PooledAllocation third(arena, 100);
    third.reset();
    second.reset();
    EXPECT_EQ(arena.used(), 128U);
    first.reset();
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandle, OtherBlocksStayUntilARelease) {
    Arena arena(bare_options());
    PooledAllocation low(arena, 100);
    PooledAllocation high(arena, 100);
    low.reset();
    EXPECT_EQ(arena.used(), 256U) << "its block is not at the top";
    high.reset();
    EXPECT_EQ(arena.used(), 128U) << "only the block at the top is returned";
    arena.reset();
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandle, BlockBelowAPlainAllocationStays) {
    Arena arena(bare_options());
    PooledAllocation handle(arena, 100);
    arena.allocate(100);
    handle.reset();
    EXPECT_EQ(arena.used(), 256U);
}

TEST(ArenaHandle, ReturnedBlockMakesMarksAboveStale) {
    Arena arena(bare_options());
    const Arena::Mark bottom = arena.mark();
    PooledAllocation handle(arena, 100);
    const Arena::Mark above = arena.mark();
    handle.reset();
    arena.allocate(1000);
    EXPECT_EQ(message_of<std::invalid_argument>([&] { arena.release_to(above); }),
              "tensorpool: arena 'mine': release_to: the mark at 128 B is stale: a release went "
              "below it since");
    arena.release_to(bottom);
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandle, ScopeAboveAReturnedBlockDoesNothing) {
    Arena arena(bare_options());
    PooledAllocation handle(arena, 100);
    {
        const ArenaScope scope(arena);
        handle.reset();
        arena.allocate(1000);
    }
    EXPECT_EQ(arena.used(), 1024U);
}

TEST(ArenaHandle, ScopeAroundAReturnedBlockReleases) {
    Arena arena(bare_options());
    arena.allocate(64);
    {
        const ArenaScope scope(arena);
        arena.allocate(64);
        const PooledAllocation handle(arena, 100);
    }
    EXPECT_EQ(arena.used(), 64U);
}

TEST(ArenaHandle, OutdatedByAReleaseGivesBackNothing) {
    Arena arena(unchecked());
    PooledAllocation handle(arena, 100);
    arena.reset();
    handle.reset();
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandle, OutdatedWhoseEndMeetsTheNewTopGivesBackNothing) {
    Arena arena(unchecked());
    PooledAllocation outdated(arena, 100);
    arena.reset();
    void* const block = arena.allocate(100);
    ASSERT_EQ(block, outdated.get());
    ASSERT_EQ(arena.used(), 128U) << "the top is where the block of the handle ended";
    outdated.reset();
    EXPECT_EQ(arena.used(), 128U);
    EXPECT_NE(arena.allocate(100), block);
}

TEST(ArenaHandle, OutdatedDoesNotEndTheHandleThatHasItsPlace) {
    Arena arena(unchecked());
    const Arena::Mark bottom = arena.mark();
    for (int round = 0; round < 5; ++round) {
        PooledAllocation outdated(arena, 100);
        arena.release_to(bottom);
        PooledAllocation present(arena, 100);
        ASSERT_EQ(present.get(), outdated.get());
        outdated.swap(present);
        present.reset();
        EXPECT_EQ(arena.used(), 128U);
        outdated.reset();
        EXPECT_EQ(arena.used(), 0U);
    }
}

TEST(ArenaHandle, BelowTheMarkOfAReleaseStaysValid) {
    Arena arena(bare_options());
    PooledAllocation handle(arena, 100);
    const Arena::Mark mark = arena.mark();
    for (int round = 0; round < 3; ++round) {
        arena.allocate(1000);
        arena.release_to(mark);
    }
    handle.reset();
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandle, ReturnOfAnotherHandleDoesNotOutdateIt) {
    Arena arena(bare_options());
    PooledAllocation low(arena, 100);
    for (int round = 0; round < 3; ++round) PooledAllocation high(arena, 1000);
    low.reset();
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandle, PaddingOfAnAlignmentStays) {
    Arena arena(bare_options());
    arena.allocate(64);
    PooledAllocation handle(arena, 64, 4096);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(handle.get()) % 4096, 0U);
    handle.reset();
    EXPECT_EQ(arena.used(), 4096U);
}

TEST(ArenaHandle, ThrowsWhatTheArenaThrowsAndLeavesItUnchanged) {
    Arena arena(bare_options());
    EXPECT_THROW(PooledAllocation(arena, 2 * testing::gib), AllocationError);
    EXPECT_THROW(PooledAllocation(arena, 100, 48), std::invalid_argument);
    EXPECT_FALSE(PooledAllocation(arena, 0));
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandle, ReleaseLeavesTheBlockToTheArena) {
    Arena arena(checked());
    PooledAllocation handle(arena, 100);
    EXPECT_NE(handle.release(), nullptr);
    EXPECT_FALSE(handle);
    EXPECT_EQ(arena.used(), 128U);
    arena.reset();  // with checks: no handle owns the block any more
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandle, EndRemovesItsObjectsFromTheRegister) {
    ArenaOptions options = bare_options();
    options.objects = true;
    Arena arena(options);
    PooledAllocation low(arena, 100);
    PooledAllocation high(arena, 100);
    const ObjectId kept = arena.record(high.get(), {.name = "high", .kind = "block", .bytes = 100});
    arena.record(low.get(), {.name = "low", .kind = "block", .bytes = 100});
    low.reset();
    ASSERT_EQ(arena.objects().size(), 1U);
    EXPECT_EQ(arena.objects()[0].id, kept);
    high.reset();
    EXPECT_TRUE(arena.objects().empty());
}

TEST(ArenaHandle, MovesAndSwapsWithHandlesOfOtherSources) {
    MemoryPool pool;
    Arena arena(bare_options());
    Context context;
    constexpr std::size_t large = 100 * kib;  // a context takes it from its arena
    {
        PooledAllocation one(arena, 100);
        PooledAllocation other(pool, 200, 256);
        PooledAllocation third(context, large);
        EXPECT_EQ(context.used(), large);
        one.swap(other);
        EXPECT_TRUE(pool.owns(one.get()));
        EXPECT_EQ(other.size(), 100U);
        third = std::move(other);
        EXPECT_EQ(context.used(), 0U);
        EXPECT_EQ(arena.used(), 128U);
        one = std::move(third);
        EXPECT_EQ(pool.get_total_allocated(), 0U);
    }
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandle, OfALargeBlockOfAContextIsABlockOfItsArena) {
    Context context(0, 256);
    PooledAllocation handle(context, 100 * kib + 1);
    EXPECT_EQ(context.used(), 100 * kib + 256);
    EXPECT_EQ(context.mark(), 100 * kib + 256);
    handle.reset();
    EXPECT_EQ(context.used(), 0U);
}

TEST(ArenaHandle, OfAMeasuringArenaHasNoMemory) {
    Arena arena = Arena::measuring();
    const PooledAllocation handle(arena, 100);
    EXPECT_NE(handle.get(), nullptr);
    EXPECT_EQ(handle.host_pointer(), nullptr);
    EXPECT_EQ(message_of<std::invalid_argument>([&] { (void)handle.as<float>(); }),
              "tensorpool: as: the host cannot access the block, which belongs to a source of kind "
              "'arena' (DLPack device type 1); expected memory of the host");
    EXPECT_THROW(PooledArray<int>(arena, 10), std::invalid_argument);
    EXPECT_EQ(arena.used(), 128U) << "the array left nothing behind";
}

TEST(ArenaHandle, ArrayOfAnArenaHoldsItsElements) {
    Arena arena(bare_options());
    {
        const PooledArray<int> values(arena, 100);
        EXPECT_TRUE(std::ranges::all_of(values, [](int value) { return value == 0; }));
        EXPECT_EQ(arena.used(), 448U);
        EXPECT_THROW(PooledArray<double>(arena, SIZE_MAX / 2), std::bad_array_new_length);
    }
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaHandleDeathTest, ReleaseAboveWhichHandlesLiveNamesTheFirst) {
    Arena arena(checked());
    arena.allocate(64);
    const Arena::Mark mark = arena.mark();
    arena.allocate(64);
    const PooledAllocation first(arena, 100);
    const PooledAllocation second(arena, 1000);
    const std::string line =
        "a handle owns the block of 128 B at .* \\(offset 128 B\\), above "
        "the mark at ";
    const ::testing::KilledBySignal aborted(SIGABRT);
    EXPECT_EXIT(arena.release_to(mark), aborted, line + "64 B");
    EXPECT_EXIT(arena.release_to(std::size_t{192}), aborted, line + "192 B");
    EXPECT_EXIT(arena.reset(), aborted, line + "0 B");
    EXPECT_EXIT(
        {
            std::optional<PooledAllocation> late;
            const ArenaScope scope(arena);
            late.emplace(arena, 5000);
        },
        aborted, "a handle owns the block of 5056 B at .* \\(offset 1280 B\\)");
}

TEST(ArenaHandleDeathTest, EndOnAnotherThreadOfAOneThreadArenaIsMisuse) {
    ArenaOptions options = checked();
    options.sharing = Sharing::one_thread;
    Arena arena(options);
    PooledAllocation handle(arena, 100);
    EXPECT_EXIT(std::thread([&] { handle.reset(); }).join(), ::testing::KilledBySignal(SIGABRT),
                "the end of a handle: arena 'mine' belongs to one thread");
}

TEST(ArenaHandle, EndedHandlesDoNotStopAReleaseWithChecks) {
    Arena arena(checked());
    const Arena::Mark mark = arena.mark();
    PooledAllocation low(arena, 100);
    PooledAllocation high(arena, 100);
    low.reset();
    high.reset();
    arena.release_to(mark);
    EXPECT_EQ(arena.used(), 0U);
}

// A fork closes the arena while other threads make and end handles; the child goes on with it.
TEST(ArenaHandleDeathTest, EndsInTheChildOfAFork) {
    Arena arena(bare_options());
    PooledAllocation kept(arena, 100);
    std::atomic<bool> stops = false;
    std::thread other([&] {
        while (!stops) PooledAllocation(arena, 1000).reset();
    });
    for (int round = 0; round < 20; ++round) {
        EXPECT_EXIT(
            {
                const std::size_t before = arena.used();
                PooledAllocation handle(arena, 100);
                const bool grew = arena.used() > before;
                handle.reset();
                std::_Exit(grew && arena.used() == before ? 0 : 1);
            },
            ::testing::ExitedWithCode(0), "");
    }
    stops = true;
    other.join();
    EXPECT_EQ(arena.used(), 128U);
}

// Threads make and end handles, and mark, while others do the same. No block may overlap another,
// and no mark that nothing outdated may be stale.
TEST(ArenaHandle, ThreadsMakeAndEndHandlesAtOnce) {
    ArenaOptions options = bare_options();
    options.checks = Checks::off;
    Arena arena(options);
    std::atomic<bool> good = true;
    const auto work = [&](unsigned seed) {
        std::minstd_rand random(seed);
        std::vector<std::pair<PooledAllocation, std::uint64_t>> mine;
        for (std::uint64_t step = 0; step < 3000; ++step) {
            if (mine.size() < 4 && random() % 2 == 0) {
                const std::size_t bytes = 1 + random() % 300;
                mine.emplace_back(PooledAllocation(arena, bytes), step * 8 + seed);
                write_pattern(mine.back().first.get(), bytes, mine.back().second);
            } else if (!mine.empty()) {
                std::swap(mine[random() % mine.size()], mine.back());
                const auto& [handle, pattern] = mine.back();
                if (!holds(handle.get(), handle.size(), pattern)) good = false;
                mine.pop_back();
            }
            if (arena.mark().offset() % 64 != 0) good = false;
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i + 1);
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(good);
    const Arena::Mark mark = arena.mark();
    EXPECT_EQ(mark.offset(), arena.used());
    arena.allocate(64);
    arena.release_to(mark);
    arena.reset();
    EXPECT_EQ(arena.used(), 0U);
}

}  // namespace
}  // namespace tensorpool
