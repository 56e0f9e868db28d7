// Threads' caches in pools with checks.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t sizes[] = {64, 1000, 20 * kib, 64 * kib};

class CheckedPoolsCache : public ::testing::TestWithParam<Checks> {
protected:
    static std::uint64_t misses(const MemoryPool& pool) {
        std::uint64_t all = 0;
        for (const BucketStatistics& bucket : pool.statistics().buckets) all += bucket.cache_misses;
        return all;
    }
    static std::size_t parked_bytes(const MemoryPool& pool) {
        std::size_t all = 0;
        for (const BucketStatistics& bucket : pool.statistics().buckets) all += bucket.parked_bytes;
        return all;
    }

    MemoryPool pool_{PoolOptions{.checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Levels, CheckedPoolsCache, ::testing::Values(Checks::basic, Checks::full),
                         [](const auto& level) {
                             return level.param == Checks::full ? "full" : "basic";
                         });

TEST_P(CheckedPoolsCache, PairsOfCallsUseNoSpan) {
    for (const std::size_t bytes : sizes) {
        pool_.deallocate(pool_.allocate(bytes), bytes);
        const std::uint64_t before = misses(pool_);
        const std::size_t capacity = pool_.get_total_capacity();
        for (unsigned i = 0; i < 1000; ++i) {
            pool_.deallocate(pool_.allocate(bytes), bytes);
            pool_.deallocate(pool_.try_allocate(bytes));
        }
        EXPECT_EQ(misses(pool_), before) << bytes;
        EXPECT_EQ(pool_.get_total_capacity(), capacity);
        EXPECT_EQ(pool_.get_total_allocated(), 0U);
    }
    EXPECT_GT(parked_bytes(pool_), 0U);
    EXPECT_EQ(pool_.get_allocation_count(), 4 * 2001U);
    EXPECT_EQ(pool_.get_deallocation_count(), 4 * 2001U);
}

TEST_P(CheckedPoolsCache, BlocksCrossBetweenThreadsInMagazines) {
    std::vector<void*> blocks(10'000);
    for (void*& block : blocks) block = pool_.allocate(100);
    const std::uint64_t before = misses(pool_);
    std::thread([&] {
        for (void* const block : blocks) pool_.deallocate(block, 100);
    }).join();
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    for (void*& block : blocks) block = pool_.allocate(100);
    EXPECT_LT(misses(pool_) - before, 1000U);
    for (void* const block : blocks) pool_.deallocate(block);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_P(CheckedPoolsCache, TrimReturnsAllMemory) {
    for (const std::size_t bytes : sizes) pool_.deallocate(pool_.allocate(bytes), bytes);
    EXPECT_GT(pool_.get_total_capacity(), 0U);
    pool_.trim();
    EXPECT_EQ(parked_bytes(pool_), 0U);
    EXPECT_EQ(pool_.get_total_capacity(), 0U);
}

// The calls differ by a limit, an alignment or zeroing.
TEST_P(CheckedPoolsCache, EveryDeallocateAcceptsBlocksOfEveryAllocate) {
    for (unsigned round = 0; round < 3; ++round) {
        pool_.deallocate(pool_.allocate(200, 256), 200, 256);
        pool_.deallocate(pool_.allocate(200, 256));
        pool_.deallocate(pool_.allocate_zeroed(10, 20), 200);
        pool_.deallocate(pool_.try_allocate_zeroed(10, 20));
        pool_.deallocate(pool_.allocate_prefaulted(200), 256);
        void* block = pool_.allocate(200);
        block = pool_.reallocate(block, 200, 250);
        block = pool_.reallocate(block, 250, 2000);
        pool_.deallocate(block, 2000);
    }
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST(CheckedPool, RefusesRequestsAboveMaxAllocationWithAParkedBlock) {
    PoolOptions options{.checks = Checks::basic};
    options.max_allocation = 100;
    MemoryPool pool(options);
    pool.deallocate(pool.allocate(100), 100);
    EXPECT_THROW(pool.allocate(101), AllocationError);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

}  // namespace
}  // namespace tensorpool
