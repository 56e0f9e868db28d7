// Many arenas without a maximum capacity leave addresses, mappings and memory for the rest of the
// program.

#include <tensorpool/arena.hpp>
#include <tensorpool/scratch.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "limits/commit_budget.hpp"
#include "platform/platform.hpp"
#include "statistics/segment/segment.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t tib = std::size_t{1} << 40;
constexpr std::size_t initial = 8 * mib;

TEST(ArenaAddresses, TenThousandArenasLeaveRoomForMappingsAndThreads) {
    if (testing::sanitized()) GTEST_SKIP() << "the sanitizers' own memory takes the addresses";
    EXPECT_TRUE(testing::holds_in_child([] {
        const std::size_t mappings = testing::mapping_count();
        std::deque<Arena> arenas;
        std::size_t reserved = 0;
        while (arenas.size() != 10'000) reserved += arenas.emplace_back().reserved();
        void* const mapping =
            mmap(nullptr, initial, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        bool ran = false;
        std::thread([&] { ran = true; }).join();
        return mapping != MAP_FAILED && ran && reserved < 96 * tib &&
               testing::mapping_count() - mappings <= 25'000 &&
               arenas.back().allocate(mib) != nullptr;
    }));
}

TEST(ArenaAddresses, FirstArenaMayGrowToTwiceTheMemoryAndLaterOnesToLess) {
    if (testing::sanitized()) GTEST_SKIP() << "the sanitizers' own memory takes the addresses";
    EXPECT_TRUE(testing::holds_in_child([] {
        std::deque<Arena> arenas(1);
        const std::size_t first = arenas.front().reserved();
        while (arenas.size() != 1000) arenas.emplace_back();
        const std::size_t last = arenas.back().reserved();
        arenas.resize(1);
        // Other arenas of this process may be alive, left by other tests.
        const std::size_t twice = platform::whole_pages(2 * platform::total_memory());
        return first == std::min(twice, 6 * tib) && last <= 6 * tib / 1000 &&
               last > 6 * tib / 1100 && Arena().reserved() == first;
    }));
}

TEST(ArenaAddresses, InitialCapacityIsChargedByTheFirstAllocation) {
    const limits::CommitBudget& budget = limits::commit_budget();
    const std::size_t before = budget.committed();
    {
        Arena arena;
        EXPECT_EQ(arena.capacity(), initial);
        EXPECT_EQ(arena.available(), initial);
        EXPECT_EQ(budget.committed(), before);
        arena.allocate(1);
        EXPECT_EQ(arena.capacity(), initial);
        EXPECT_EQ(arena.available(), initial - 64);
        EXPECT_EQ(budget.committed(), before + initial);
    }
    EXPECT_EQ(budget.committed(), before);
}

TEST(ArenaAddresses, ArenaTrimmedBeforeItsFirstAllocationChargesNothing) {
    const limits::CommitBudget& budget = limits::commit_budget();
    const std::size_t before = budget.committed();
    {
        Arena arena;
        EXPECT_EQ(arena.trim(), initial);
        EXPECT_EQ(arena.capacity(), 0U);
        EXPECT_EQ(arena.available(), 0U);
        EXPECT_EQ(budget.committed(), before);
        arena.allocate(1);
        EXPECT_GT(budget.committed(), before);
    }
    EXPECT_EQ(budget.committed(), before);
}

// Bytes that count as untouched are granted to other allocators.
TEST(ArenaAddresses, UnchargedAndPretouchedBytesAreNotCountedAsUntouched) {
    const std::size_t before = statistics::sum_of("untouched_bytes");
    Arena arena;
    EXPECT_EQ(statistics::sum_of("untouched_bytes"), before) << "nothing is charged";
    arena.allocate(mib);
    EXPECT_EQ(statistics::sum_of("untouched_bytes"), before + initial - mib);
    arena.reserve(initial);
    EXPECT_EQ(statistics::sum_of("untouched_bytes"), before);
    std::vector<std::byte> buffer(mib);
    Scratch scratch = Scratch::over(buffer);
    EXPECT_EQ(statistics::sum_of("untouched_bytes"), before) << "a caller's buffer";
}

TEST(ArenaAddresses, FirstRequestMayExceedTheInitialCapacity) {
    const limits::CommitBudget& budget = limits::commit_budget();
    const std::size_t before = budget.committed();
    Arena arena;
    arena.allocate(initial + 1);
    EXPECT_EQ(budget.committed(), before + arena.capacity());
}

}  // namespace
}  // namespace tensorpool
