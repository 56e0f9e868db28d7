// Pool::resize_pages: blocks of whole pages that grow and shrink without a copy.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/statistics_scope.hpp>

#include "platform/platform.hpp"
#include "pool/check_levels.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

class PoolLengthen : public ::testing::TestWithParam<Checks> {
protected:
    unsigned char* filled_block(std::size_t bytes, int value) {
        void* const block = pool_.allocate(bytes);
        std::memset(block, value, bytes);
        return static_cast<unsigned char*>(block);
    }
    static bool is_filled(const void* block, std::size_t bytes, unsigned char value) {
        const auto* const begin = static_cast<const unsigned char*>(block);
        for (std::size_t i = 0; i != bytes; ++i) {
            if (begin[i] != value) return false;
        }
        return true;
    }

    MemoryPool pool_{PoolOptions{.checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolLengthen, testing::check_levels(), testing::name_of_level);

TEST_P(PoolLengthen, BlockGrowsInPlaceIntoFreeMemory) {
    unsigned char* const block = filled_block(mib, 5);
    void* const behind = pool_.allocate(mib);
    pool_.deallocate(behind, mib);
    EXPECT_EQ(pool_.reallocate(block, mib, 2 * mib), block);
    EXPECT_TRUE(is_filled(block, mib, 5));
    EXPECT_EQ(pool_.usable_size(block), 2 * mib);
    pool_.deallocate(block, 2 * mib);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_P(PoolLengthen, GrowthInPlaceIsCountedAsBytesOfTheSameBlock) {
    void* const block = pool_.allocate(mib);
    const PoolStatistics before = pool_.statistics();
    ASSERT_EQ(pool_.reallocate(block, mib, 2 * mib), block);
    const PoolStatistics after = pool_.statistics();
    EXPECT_EQ(after.large.allocations, before.large.allocations);
    EXPECT_EQ(after.in_use_bytes, before.in_use_bytes + mib);
    EXPECT_EQ(after.requested_bytes, before.requested_bytes + mib);
    EXPECT_EQ(after.peak_in_use_bytes, after.in_use_bytes);
    pool_.deallocate(block, 2 * mib);
    EXPECT_EQ(pool_.statistics().in_use_bytes, 0U);
}

TEST_P(PoolLengthen, BlockWithoutRoomBehindItMovesWithoutCopy) {
    if (!platform::can_move_memory()) GTEST_SKIP() << "this system cannot move memory";
    unsigned char* const block = filled_block(8 * mib, 5);
    void* const behind = pool_.allocate(100 * kib);
    const PoolStatistics before = pool_.statistics();
    void* const moved = pool_.reallocate(block, 8 * mib, 12 * mib);
    EXPECT_NE(moved, block);
    EXPECT_TRUE(is_filled(moved, 8 * mib, 5));
    EXPECT_FALSE(pool_.owns(block));
    const PoolStatistics after = pool_.statistics();
    EXPECT_EQ(after.large.allocations, before.large.allocations + 1);
    EXPECT_EQ(after.large.deallocations, before.large.deallocations + 1);
    EXPECT_EQ(after.in_use_bytes, before.in_use_bytes + 4 * mib);
    EXPECT_LT(after.peak_in_use_bytes, after.in_use_bytes + mib)
        << "old and new block never exist at once";
    EXPECT_LE(after.peak_capacity_bytes, before.capacity_bytes + 4 * mib);
    std::memset(moved, 6, 12 * mib);
    pool_.deallocate(moved, 12 * mib);
    pool_.deallocate(behind, 100 * kib);
    EXPECT_EQ(pool_.statistics().in_use_bytes, 0U);
    EXPECT_NE(pool_.trim(), 0U);
    EXPECT_EQ(pool_.get_total_capacity(), 0U);
    EXPECT_EQ(pool_.statistics().reserved_bytes, 0U);
}

TEST_P(PoolLengthen, BlocksThatGrowInTurnKeepTheirContent) {
    std::vector<void*> blocks(3);
    std::vector<std::size_t> sizes(3, mib);
    for (std::size_t i = 0; i != 3; ++i) blocks[i] = filled_block(mib, static_cast<int>(i));
    for (unsigned round = 0; round != 12; ++round) {
        for (std::size_t i = 0; i != 3; ++i) {
            const std::size_t bytes = sizes[i] + mib + 100 * round;
            blocks[i] = pool_.reallocate(blocks[i], sizes[i], bytes);
            ASSERT_TRUE(is_filled(blocks[i], sizes[i], static_cast<unsigned char>(i)));
            std::memset(blocks[i], static_cast<int>(i), bytes);
            sizes[i] = bytes;
        }
    }
    for (std::size_t i = 0; i != 3; ++i) pool_.deallocate(blocks[i], sizes[i]);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST(PoolLengthenMisuse, PointerIntoABlockIsRejected) {
    MemoryPool pool(PoolOptions{.name = "longer"});
    auto* const block = static_cast<char*>(pool.allocate(mib));
    EXPECT_DEATH((void)pool.reallocate(block + 64, mib, 3 * mib), "lies 64 B inside");
    pool.deallocate(block, mib);
}

TEST(PoolLengthenLimit, GrowthBeyondMaxAllocationIsRefusedAndCounted) {
    MemoryPool pool(PoolOptions{.max_allocation = 2 * mib});
    void* const block = pool.allocate(mib);
    EXPECT_THROW((void)pool.reallocate(block, mib, 3 * mib), AllocationError);
    EXPECT_EQ(pool.usable_size(block), mib);
    EXPECT_EQ(pool.statistics().failures, 1U);
    pool.deallocate(block, mib);
}

class PoolShorten : public PoolLengthen {};

INSTANTIATE_TEST_SUITE_P(Checks, PoolShorten, testing::check_levels(), testing::name_of_level);

TEST_P(PoolShorten, BlockShrinksInPlaceAndItsEndIsFree) {
    unsigned char* const block = filled_block(8 * mib, 5);
    const PoolStatistics before = pool_.statistics();
    EXPECT_EQ(pool_.reallocate(block, 8 * mib, 3 * mib), block);
    EXPECT_TRUE(is_filled(block, 3 * mib, 5));
    EXPECT_EQ(pool_.usable_size(block), 3 * mib);
    const PoolStatistics after = pool_.statistics();
    EXPECT_EQ(after.in_use_bytes, before.in_use_bytes - 5 * mib);
    EXPECT_EQ(after.capacity_bytes, before.capacity_bytes);
    EXPECT_EQ(after.large.allocations, before.large.allocations);
    EXPECT_EQ(after.large.deallocations, before.large.deallocations);
    void* const in_its_end = pool_.allocate(4 * mib);
    EXPECT_EQ(pool_.statistics().capacity_bytes, before.capacity_bytes);
    std::memset(in_its_end, 6, 4 * mib);
    EXPECT_TRUE(is_filled(block, 3 * mib, 5));
    pool_.deallocate(in_its_end, 4 * mib);
    pool_.deallocate(block, 3 * mib);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_P(PoolShorten, BlockShrinksInAPoolWithoutRoomForACopy) {
    MemoryPool pool({.max_capacity = 100 * mib, .checks = GetParam()});
    void* const block = pool.allocate(80 * mib);
    EXPECT_EQ(pool.reallocate(block, 80 * mib, 30 * mib), block);
    void* const other = pool.allocate(60 * mib);
    pool.deallocate(other, 60 * mib);
    pool.deallocate(block, 30 * mib);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST_P(PoolShorten, BlockGrowsAgainIntoWhatItGaveBack) {
    unsigned char* const block = filled_block(8 * mib, 5);
    ASSERT_EQ(pool_.reallocate(block, 8 * mib, 2 * mib), block);
    EXPECT_EQ(pool_.reallocate(block, 2 * mib, 8 * mib), block);
    EXPECT_TRUE(is_filled(block, 2 * mib, 5));
    std::memset(block, 7, 8 * mib);
    pool_.deallocate(block, 8 * mib);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_P(PoolShorten, AddressesBehindAreNotOfTheBlock) {
    unsigned char* const block = filled_block(8 * mib, 5);
    ASSERT_EQ(pool_.reallocate(block, 8 * mib, 2 * mib), block);
    EXPECT_EQ(pool_.usable_size(block + 2 * mib), 0U);
    EXPECT_EQ(pool_.usable_size(block + 6 * mib), 0U);
    EXPECT_EQ(pool_.usable_size(block), 2 * mib);
    pool_.deallocate(block, 2 * mib);
}

TEST_P(PoolShorten, BudgetIsRefundedForWhatABlockGaveBack) {
    Budget budget("shrinks", {.hard = 100 * mib});
    void* block = nullptr;
    {
        const BudgetScope scope(budget);
        block = pool_.allocate(80 * mib);
        EXPECT_EQ(budget.in_use(), 80 * mib);
        EXPECT_EQ(pool_.reallocate(block, 80 * mib, 30 * mib), block);
        EXPECT_EQ(budget.in_use(), 30 * mib);
    }
    pool_.deallocate(block, 30 * mib);
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST_P(PoolShorten, ScopeCountsWhatABlockGaveBack) {
    void* const block = pool_.allocate(8 * mib);
    {
        const StatisticsScope scope("shrinks");
        ASSERT_EQ(pool_.reallocate(block, 8 * mib, 3 * mib), block);
        EXPECT_EQ(scope.growth().bytes, -static_cast<std::int64_t>(5 * mib));
    }
    pool_.deallocate(block, 3 * mib);
}

}  // namespace
}  // namespace tensorpool
