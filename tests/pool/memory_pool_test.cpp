#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <tensorpool/detail/address_range.hpp>

#include "limits/commit_budget.hpp"
#include "pool/check_levels.hpp"

namespace tensorpool {
namespace {

static_assert(!std::is_copy_constructible_v<MemoryPool>);
static_assert(!std::is_move_constructible_v<MemoryPool>);
static_assert(!std::is_copy_assignable_v<MemoryPool>);
static_assert(!std::is_move_assignable_v<MemoryPool>);
static_assert(!std::is_convertible_v<std::size_t, MemoryPool>);
static_assert(std::is_base_of_v<std::bad_alloc, AllocationError>);
static_assert(noexcept(std::declval<MemoryPool&>().try_allocate(1)));
static_assert(noexcept(std::declval<MemoryPool&>().deallocate(nullptr)));
static_assert(noexcept(get_global_memory_pool()));

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

std::string text_of_failure(MemoryPool& pool, std::size_t bytes) {
    try {
        pool.deallocate(pool.allocate(bytes));
        return "";
    } catch (const AllocationError& error) {
        EXPECT_EQ(error.asked(), bytes);
        EXPECT_EQ(error.in_use(), pool.get_total_allocated());
        return error.what();
    }
}

class MemoryPoolTotals : public ::testing::TestWithParam<Checks> {
protected:
    MemoryPool pool_{PoolOptions{.max_allocation = 64 * mib, .checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Checks, MemoryPoolTotals, testing::check_levels(), testing::name_of_level);

TEST_P(MemoryPoolTotals, NewPoolIsEmpty) {
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    EXPECT_EQ(pool_.get_total_capacity(), 0U);
    EXPECT_EQ(pool_.get_utilization_ratio(), 0.0);
    EXPECT_EQ(pool_.get_allocation_count(), 0U);
    EXPECT_EQ(pool_.get_deallocation_count(), 0U);
    EXPECT_EQ(pool_.trim(), 0U);
    EXPECT_FALSE(pool_.owns(&pool_));
}

TEST_P(MemoryPoolTotals, TotalAllocatedIsTheBytesOfTheBlocksInUse) {
    void* const small = pool_.allocate(65);
    EXPECT_EQ(pool_.get_total_allocated(), 128U);
    void* const large = pool_.allocate(65 * kib);
    EXPECT_EQ(pool_.get_total_allocated(), 128 + pool_.usable_size(large));
    void* const aligned = pool_.allocate(100, 4096);
    EXPECT_EQ(pool_.get_total_allocated(), 128 + pool_.usable_size(large) + 4096);
    pool_.deallocate(aligned);
    pool_.deallocate(small);
    EXPECT_EQ(pool_.get_total_allocated(), pool_.usable_size(large));
    pool_.deallocate(large);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_P(MemoryPoolTotals, CountsEverySuccessfulCall) {
    void* blocks[] = {pool_.allocate(10), pool_.allocate(10, 256), pool_.try_allocate(mib),
                      pool_.try_allocate(10, 4096), pool_.allocate_zeroed(3, 5)};
    EXPECT_EQ(pool_.get_allocation_count(), 5U);
    EXPECT_EQ(pool_.get_deallocation_count(), 0U);
    pool_.deallocate(blocks[0], 10);
    pool_.deallocate(blocks[1], 10, 256);
    for (unsigned i = 2; i < 5; ++i) pool_.deallocate(blocks[i]);
    EXPECT_EQ(pool_.get_deallocation_count(), 5U);
}

TEST_P(MemoryPoolTotals, UtilizationIsBytesInUseOverBytesCommitted) {
    void* const block = pool_.allocate(5 * mib);
    EXPECT_EQ(pool_.get_utilization_ratio(), static_cast<double>(pool_.get_total_allocated()) /
                                                 static_cast<double>(pool_.get_total_capacity()));
    EXPECT_GT(pool_.get_utilization_ratio(), 0.0);
    EXPECT_LE(pool_.get_utilization_ratio(), 1.0);
    pool_.deallocate(block);
    EXPECT_EQ(pool_.get_utilization_ratio(), 0.0);
}

TEST_P(MemoryPoolTotals, CountsExactlyAcrossEndedThreads) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i) {
        threads.emplace_back([this] {
            for (unsigned round = 0; round < 1000; ++round) {
                pool_.deallocate(pool_.allocate(round * 100 + 1), round * 100 + 1);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(pool_.get_allocation_count(), 4000U);
    EXPECT_EQ(pool_.get_deallocation_count(), 4000U);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

// Construction and destruction -------------------------------------------------------------------

TEST(MemoryPool, ConstructorCommitsInitialCapacity) {
    const MemoryPool pool(10 * mib);
    EXPECT_EQ(pool.get_total_capacity(), 10 * mib);
    EXPECT_EQ(pool.name(), "pool");
}

TEST(MemoryPool, RefusedInitialCapacityLeavesNothingBehind) {
    const std::size_t before = limits::commit_budget().committed();
    const PoolOptions options{.name = "vast", .initial_capacity = std::size_t{1} << 50};
    try {
        const MemoryPool pool(options);
        FAIL();
    } catch (const AllocationError& error) {
        EXPECT_EQ(error.asked(), std::size_t{1} << 50);
        EXPECT_EQ(std::strncmp(error.what(), "tensorpool: vast: ", 18), 0) << error.what();
    }
    EXPECT_EQ(limits::commit_budget().committed(), before);
}

TEST(MemoryPool, NameIsKeptUpTo47Bytes) {
    const std::string longest(47, 'n');
    EXPECT_EQ(MemoryPool(PoolOptions{.name = longest}).name(), longest);
    const MemoryPool pool(PoolOptions{.name = longest + "more"});
    EXPECT_EQ(pool.name(), longest);
    EXPECT_EQ(pool.statistics().name, longest);
}

TEST(MemoryPool, NameIsNotTruncatedInsideACharacter) {
    const MemoryPool pool(PoolOptions{.name = std::string(46, 'n') + "é"});
    EXPECT_EQ(pool.name(), std::string(46, 'n'));
    EXPECT_EQ(MemoryPool(PoolOptions{.name = std::string(45, 'n') + "é!"}).name(),
              std::string(45, 'n') + "é");
    EXPECT_EQ(MemoryPool(PoolOptions{.name = ""}).name(), "");
}

TEST(MemoryPool, DestructorReturnsMemoryOfBlocksInUse) {
    const std::size_t before = limits::commit_budget().committed();
    {
        MemoryPool pool(PoolOptions{.checks = Checks::off});
        std::memset(pool.allocate(100), 1, 100);
        std::memset(pool.allocate(10 * mib), 1, 10 * mib);
    }
    EXPECT_EQ(limits::commit_budget().committed(), before);
}

// Failures ---------------------------------------------------------------------------------------

TEST(MemoryPool, FailureReportsPoolRequestUseAndLimit) {
    MemoryPool pool(
        PoolOptions{.name = "mine", .max_capacity = 8 * mib, .max_allocation = 64 * mib});
    void* const block = pool.allocate(mib);
    EXPECT_EQ(text_of_failure(pool, 64 * mib + 1),
              "tensorpool: mine: allocate: 67108865 B (64 MiB) "
              "requested with 1 MiB in use and 4 MiB "
              "committed; limit met: max_allocation (64 MiB)\n"
              "  it would fit if max_allocation were at least 67108865 B (64 MiB)");
    const std::string text = text_of_failure(pool, 8 * mib);
    EXPECT_EQ(text.find("tensorpool: mine: allocate: 8388608 B (8 MiB) "
                        "requested with 1 MiB in use"),
              0U);
    EXPECT_NE(text.find("; limit met: max_capacity (8 MiB)"), std::string::npos) << text;
    pool.deallocate(block);
}

TEST(MemoryPool, RequestOfMaxAllocationSucceeds) {
    MemoryPool pool(PoolOptions{.max_allocation = 10 * mib});
    EXPECT_EQ(text_of_failure(pool, 10 * mib), "");
    EXPECT_NE(text_of_failure(pool, 10 * mib + 1), "");
    EXPECT_EQ(MemoryPool(PoolOptions{.max_allocation = 1}).try_allocate(2), nullptr);
}

TEST(MemoryPool, MaxAllocationDefaultsTo8GiB) {
    MemoryPool pool;
    const std::string text = text_of_failure(pool, (std::size_t{8} << 30) + 1);
    EXPECT_NE(text.find("limit met: max_allocation (8 GiB)"), std::string::npos) << text;
}

TEST(MemoryPool, TryAllocateZeroedReturnsNullWhereAllocateZeroedThrows) {
    MemoryPool pool(PoolOptions{.max_allocation = 64 * mib});
    constexpr std::size_t max = SIZE_MAX;
    EXPECT_EQ(pool.try_allocate_zeroed(64 * mib + 1, 1), nullptr);
    EXPECT_EQ(pool.try_allocate_zeroed(max, max), nullptr);
    EXPECT_EQ(pool.try_allocate_zeroed(0, max), nullptr);
    EXPECT_EQ(pool.get_allocation_count(), 0U);
    auto* const block = static_cast<unsigned char*>(pool.try_allocate_zeroed(100, 10));
    ASSERT_NE(block, nullptr);
    std::memset(block, 1, 1000);
    pool.deallocate(block);
    auto* const again = static_cast<unsigned char*>(pool.try_allocate_zeroed(10, 100));
    EXPECT_EQ(std::count(again, again + 1000, 0), 1000);
    EXPECT_EQ(pool.usable_size(again), detail::bytes_of_block_in_use(again));
    pool.deallocate(again);
    void* const large = pool.allocate(mib + 1);
    EXPECT_EQ(pool.usable_size(large), detail::bytes_of_block_in_use(large));
    pool.deallocate(large);
    EXPECT_EQ(detail::bytes_of_block_in_use(&pool), 0U);
}

TEST(MemoryPool, TryAllocateReturnsNullWhereAllocateThrows) {
    MemoryPool pool(PoolOptions{.max_capacity = mib, .max_allocation = 2 * mib});
    for (const std::size_t bytes : {2 * mib, 2 * mib + 1, SIZE_MAX}) {
        EXPECT_EQ(pool.try_allocate(bytes), nullptr);
        EXPECT_THROW(pool.allocate(bytes), AllocationError);
        EXPECT_THROW(pool.allocate(bytes, 4096), std::bad_alloc);
    }
}

}  // namespace
}  // namespace tensorpool
