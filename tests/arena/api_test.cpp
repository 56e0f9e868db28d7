// Tests of the public names only, as an outside program uses them.
#include <tensorpool/tensorpool.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <new>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arena/api_test.hpp"

namespace {

using tensorpool::Arena;
using tensorpool::ArenaOptions;
using tensorpool::ArenaResource;
using tensorpool::ArenaScope;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t gib = std::size_t{1} << 30U;

using namespace tensorpool::testing;

// The documented signatures.
static_assert(std::is_same_v<decltype(&Arena::trim), std::size_t (Arena::*)() noexcept>);
static_assert(std::is_same_v<decltype(&Arena::reset), void (Arena::*)() noexcept>);
static_assert(std::is_same_v<decltype(&Arena::reserve), void (Arena::*)(std::size_t)>);
static_assert(std::is_same_v<decltype(&Arena::mark), Arena::Mark (Arena::*)() const noexcept>);
static_assert(std::is_void_v<decltype(std::declval<Arena&>().release_to(Arena::Mark()))>);
static_assert(noexcept(std::declval<Arena&>().try_allocate(1)));
static_assert(noexcept(std::declval<const Arena&>().used()));
static_assert(noexcept(std::declval<const Arena&>().peak()));
static_assert(noexcept(std::declval<const Arena&>().capacity()));
static_assert(noexcept(std::declval<const Arena&>().reserved()));
static_assert(noexcept(std::declval<const Arena&>().available()));
static_assert(std::is_base_of_v<std::pmr::memory_resource, ArenaResource>);

TEST(Api, ArenaGrowsWithoutMovingBlocks) {
    Arena arena;
    std::vector<std::pair<std::byte*, int>> blocks;
    for (int index = 0; index < 40; ++index) {
        auto* block = static_cast<std::byte*>(arena.allocate(mib));
        ASSERT_TRUE(is_aligned(block, 64));
        std::memset(block, index, mib);
        blocks.emplace_back(block, index);
    }
    for (const auto& [block, index] : blocks) {
        EXPECT_EQ(std::to_integer<int>(block[0]), index);
        EXPECT_EQ(std::to_integer<int>(block[mib - 1]), index);
    }
    EXPECT_EQ(arena.used(), 40 * mib);
    EXPECT_EQ(arena.peak(), 40 * mib);
    EXPECT_GE(arena.capacity(), arena.used());
    EXPECT_GE(arena.reserved(), arena.capacity());
    EXPECT_EQ(arena.available(), arena.capacity() - arena.used());
}

TEST(Api, ArenaStartsAtInitialCapacityAndRefusesBeyondMaximum) {
    ArenaOptions options;
    options.name = "phase";
    options.initial_capacity = mib;
    options.max_capacity = 4 * mib;
    options.alignment = 128;
    Arena arena(options);
    EXPECT_GE(arena.capacity(), mib);
    EXPECT_TRUE(is_aligned(arena.allocate(1), 128));
    EXPECT_TRUE(is_aligned(arena.allocate(1, 4096), 4096));
    EXPECT_EQ(arena.allocate(0), nullptr);
    EXPECT_TRUE(throws_invalid_argument([&] { arena.allocate(1, 48); }));
    EXPECT_EQ(arena.try_allocate(1, 48), nullptr);
    const std::size_t used = arena.used();
    EXPECT_TRUE(throws_bad_alloc([&] { arena.allocate(5 * mib); }));
    EXPECT_EQ(arena.try_allocate(5 * mib), nullptr);
    EXPECT_TRUE(throws_bad_alloc([&] { arena.allocate(9 * gib); }));
    EXPECT_TRUE(throws_bad_alloc([&] { arena.allocate(std::numeric_limits<std::size_t>::max()); }));
    EXPECT_EQ(arena.used(), used);
    arena.reserve(3 * mib);
    EXPECT_GE(arena.capacity(), 3 * mib);
    EXPECT_GT(arena.trim(), 0U);
}

TEST(Api, ArenaOverABufferNeverGrows) {
    alignas(64) static std::array<std::byte, 4096> buffer;
    Arena arena = Arena::over(buffer);
    auto* first = static_cast<std::byte*>(arena.allocate(4096));
    EXPECT_EQ(first, buffer.data());
    EXPECT_TRUE(throws_bad_alloc([&] { arena.allocate(1); }));
    EXPECT_EQ(arena.try_allocate(1), nullptr);
    arena.reset();
    EXPECT_EQ(arena.used(), 0U);
    EXPECT_EQ(arena.allocate(64), buffer.data());
}

TEST(Api, MeasuringArenaPredictsTheNeedOfARun) {
    const auto run = [](Arena& arena) {
        for (std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{100000}, 3 * mib})
            EXPECT_NE(arena.allocate(bytes), nullptr);
        EXPECT_TRUE(is_aligned(arena.allocate(77, 256), 256));
    };
    Arena measuring = Arena::measuring();
    run(measuring);
    EXPECT_NE(measuring.allocate(1), measuring.allocate(1));
    Arena again = Arena::measuring();
    run(again);
    Arena arena;
    arena.reserve(again.peak());
    const std::size_t capacity = arena.capacity();
    run(arena);
    EXPECT_EQ(arena.capacity(), capacity);
    EXPECT_EQ(arena.used(), again.used());
}

TEST(Api, ForeignAndStaleMarksAreRefused) {
    Arena arena;
    Arena other;
    const Arena::Mark start = arena.mark();
    void* first = arena.allocate(100);
    const Arena::Mark later = arena.mark();
    arena.allocate(100);
    for (int round = 0; round < 3; ++round) {
        arena.release_to(later);
        arena.allocate(1000);
    }
    arena.release_to(start);
    EXPECT_EQ(arena.allocate(100), first);
    EXPECT_TRUE(throws_invalid_argument([&] { arena.release_to(later); }));
    EXPECT_TRUE(throws_invalid_argument([&] { other.release_to(start); }));
    EXPECT_EQ(arena.used(), 128U);
    EXPECT_EQ(other.used(), 0U);
}

TEST(Api, ArenaScopeReleasesWhenDestroyed) {
    Arena arena;
    arena.allocate(64);
    {
        ArenaScope scope(arena);
        arena.allocate(mib);
        EXPECT_EQ(arena.used(), mib + 64);
    }
    EXPECT_EQ(arena.used(), 64U);
    EXPECT_EQ(arena.peak(), mib + 64);
}

TEST(Api, ArenaServesEveryThread) {
    Arena arena;
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number)
        threads.emplace_back([&arena, number] {
            for (int index = 0; index < 1000; ++index)
                std::memset(arena.allocate(1024), number, 1024);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(arena.used(), 4U * 1000U * 1024U);
}

TEST(Api, ContainersAllocateFromAnArena) {
    Arena arena;
    Arena other;
    ArenaResource resource(arena);
    std::pmr::vector<int> numbers(&resource);
    for (int number = 0; number < 10000; ++number) numbers.push_back(number);
    std::pmr::unordered_map<int, int> map(&resource);
    for (int number = 0; number < 1000; ++number) map[number] = 2 * number;
    EXPECT_EQ(numbers[9999], 9999);
    EXPECT_EQ(map.at(500), 1000);
    EXPECT_GT(arena.used(), 40000U);
    EXPECT_EQ(resource, ArenaResource(arena));
    EXPECT_NE(resource, ArenaResource(other));
}

TEST(Api, SystemMemoryIsReported) {
    EXPECT_GT(tensorpool::get_total_memory(), 0U);
    EXPECT_LE(tensorpool::get_available_memory(), tensorpool::get_total_memory());
}

}  // namespace
