#include <tensorpool/pooled_array.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace tensorpool {
namespace {

static_assert(!std::is_copy_constructible_v<PooledArray<int>>);
static_assert(!std::is_copy_assignable_v<PooledArray<int>>);
static_assert(std::is_nothrow_move_constructible_v<PooledArray<int>>);
static_assert(std::is_nothrow_move_assignable_v<PooledArray<int>>);
static_assert(std::ranges::contiguous_range<PooledArray<int>>);
static_assert(std::is_convertible_v<PooledArray<int>&, std::span<int>>);
static_assert(std::is_convertible_v<const PooledArray<int>&, std::span<const int>>);

/// Counts the existing objects. Its constructor throws for a chosen one.
struct Counted {
    static inline int alive = 0;
    static inline int throws_at = -1;

    Counted() {
        if (alive == throws_at) throw std::runtime_error("thrown");
        ++alive;
    }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --alive; }
};

struct alignas(1024) Wide {
    char bytes[1024];
};

std::size_t blocks_in_use(const MemoryPool& pool) {
    return pool.get_allocation_count() - pool.get_deallocation_count();
}

TEST(PooledArray, ElementsAreValueInitialisedInThePool) {
    MemoryPool pool;
    void* const dirty = pool.allocate(4000);
    std::fill_n(static_cast<char*>(dirty), 4000, 'x');
    pool.deallocate(dirty, 4000);

    const PooledArray<float> values(pool, 1000);
    EXPECT_EQ(values.size(), 1000U);
    EXPECT_FALSE(values.empty());
    EXPECT_TRUE(pool.owns(values.data()));
    EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return value == 0.0F; }));
}

TEST(PooledArray, WithoutAPoolUsesTheGlobalOne) {
    const PooledArray<int> values(100);
    EXPECT_TRUE(get_global_memory_pool().owns(values.data()));
}

TEST(PooledArray, ConstructsAndDestroysEachElement) {
    MemoryPool pool;
    {
        const PooledArray<Counted> values(pool, 100);
        EXPECT_EQ(Counted::alive, 100);
    }
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledArray, ThrowingConstructorLeavesNothingBehind) {
    MemoryPool pool;
    Counted::throws_at = 50;
    EXPECT_THROW(PooledArray<Counted>(pool, 100), std::runtime_error);
    Counted::throws_at = -1;
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_EQ(blocks_in_use(pool), 0U);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledArray, OverflowingCountThrows) {
    MemoryPool pool;
    // Volatile, because the compiler would warn about the number of elements.
    const volatile std::size_t max = std::numeric_limits<std::size_t>::max();
    EXPECT_THROW(PooledArray<double>(pool, max), AllocationError);
    EXPECT_THROW(PooledArray<double>(pool, max / sizeof(double) + 2), AllocationError);
    EXPECT_EQ(blocks_in_use(pool), 0U);
}

TEST(PooledArray, ZeroElementsOwnNothing) {
    MemoryPool pool;
    const PooledArray<std::string> none;
    const PooledArray<std::string> zero(pool, 0);
    EXPECT_TRUE(none.empty());
    EXPECT_TRUE(zero.empty());
    EXPECT_EQ(zero.begin(), zero.end());
    EXPECT_EQ(pool.get_allocation_count(), 0U);
}

TEST(PooledArray, OverAlignedElementsAreAligned) {
    MemoryPool pool;
    {
        const PooledArray<Wide> values(pool, 7);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data()) % alignof(Wide), 0U);
        const PooledArray<char> bytes(pool, 7);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0U);
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledArray, MoveTransfersTheElements) {
    MemoryPool pool;
    {
        PooledArray<Counted> from(pool, 10);
        const Counted* const elements = from.data();
        const PooledArray<Counted> to(std::move(from));
        EXPECT_EQ(to.data(), elements);
        EXPECT_EQ(to.size(), 10U);
        EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move): what is left is promised
        EXPECT_EQ(Counted::alive, 10);
    }
    EXPECT_EQ(Counted::alive, 0);
}

TEST(PooledArray, MoveAssignmentDestroysTheOldElements) {
    MemoryPool one;
    MemoryPool other;
    PooledArray<Counted> from(one, 10);
    PooledArray<Counted> to(other, 5);
    to = std::move(from);
    EXPECT_EQ(Counted::alive, 10);
    EXPECT_EQ(to.size(), 10U);
    EXPECT_EQ(blocks_in_use(other), 0U);
    to = PooledArray<Counted>();
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_EQ(blocks_in_use(one), 0U);
}

TEST(PooledArray, SelfAssignmentHasNoEffect) {
    MemoryPool pool;
    PooledArray<std::string> lines(pool, 3);
    lines[2] = "kept where it was, long enough to lie on the heap";
    PooledArray<std::string>& same = lines;
    lines = std::move(same);
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[2], "kept where it was, long enough to lie on the heap");
}

TEST(PooledArray, SwapExchangesElements) {
    MemoryPool one;
    MemoryPool other;
    PooledArray<std::string> left(one, 2);
    PooledArray<std::string> right(other, 3);
    left[0] = "left";
    right[0] = "right";
    std::swap(left, right);
    EXPECT_EQ(left.size(), 3U);
    EXPECT_EQ(left[0], "right");
    EXPECT_EQ(right[0], "left");
    EXPECT_TRUE(one.owns(right.data()));
}

TEST(PooledArray, SupportsMoveOnlyTypes) {
    MemoryPool pool;
    PooledArray<std::unique_ptr<int>> owners(pool, 3);
    owners[1] = std::make_unique<int>(7);
    EXPECT_EQ(*owners[1], 7);
}

TEST(PooledArray, IsARangeAndASpan) {
    MemoryPool pool;
    PooledArray<int> values(pool, 100);
    std::iota(values.begin(), values.end(), 0);
    const std::span<int> span = values;
    const std::span<const int> constant = values;
    EXPECT_EQ(span.data(), values.data());
    EXPECT_EQ(constant.size(), 100U);
    EXPECT_EQ(std::accumulate(constant.begin(), constant.end(), 0), 4950);
}

}  // namespace
}  // namespace tensorpool
