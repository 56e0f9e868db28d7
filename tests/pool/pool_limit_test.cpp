// The limit of a pool's capacity, changed while the pool is in use.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "pool/check_levels.hpp"
#include "pool/fill.hpp"

namespace tensorpool {
namespace {

using testing::fill;
using testing::free_all;
using testing::sizes;

constexpr std::size_t mib = std::size_t{1} << 20;

class PoolLimit : public ::testing::TestWithParam<Checks> {
protected:
    MemoryPool pool_{PoolOptions{.checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolLimit, testing::check_levels(), testing::name_of_level);

TEST_P(PoolLimit, IsTheOneOfTheOptionsInitially) {
    EXPECT_EQ(pool_.max_capacity(), 0U);
    EXPECT_EQ(MemoryPool({.max_capacity = 3 * mib}).max_capacity(), 3 * mib);
}

TEST_P(PoolLimit, AppliesOnceItIsSet) {
    for (const std::size_t bytes : sizes) {
        pool_.set_max_capacity(16 * mib);
        const std::vector<void*> blocks = fill(pool_, bytes);
        EXPECT_LE(pool_.get_total_capacity(), 16 * mib) << bytes;
        EXPECT_GE(pool_.get_total_capacity(), 15 * mib) << bytes;
        free_all(pool_, blocks, bytes);
        pool_.trim();
    }
    pool_.set_max_capacity(0);
    void* const block = pool_.try_allocate(32 * mib);
    EXPECT_NE(block, nullptr);
    pool_.deallocate(block);
}

TEST_P(PoolLimit, AppearsInStatisticsAndErrors) {
    pool_.set_max_capacity(5 * mib);
    EXPECT_EQ(pool_.max_capacity(), 5 * mib);
    EXPECT_EQ(pool_.statistics().limit_bytes, 5 * mib);
    try {
        pool_.allocate(6 * mib);
        FAIL() << "6 MiB under a limit of 5 MiB";
    } catch (const AllocationError& error) {
        EXPECT_NE(std::string(error.what()).find("max_capacity (5 MiB)"), std::string::npos)
            << error.what();
    }
}

TEST_P(PoolLimit, LoweringReturnsOnlyFreeMemory) {
    for (const std::size_t bytes : sizes) {
        pool_.set_max_capacity(0);
        free_all(pool_, testing::touched_blocks(pool_, 24 * mib, bytes), bytes);
        const std::size_t before = pool_.get_total_capacity();
        pool_.set_max_capacity(before);
        EXPECT_EQ(pool_.get_total_capacity(), before) << bytes;
        pool_.set_max_capacity(8 * mib);
        EXPECT_EQ(pool_.get_total_capacity(), 8 * mib) << bytes;
    }
}

TEST_P(PoolLimit, LoweringReturnsReservedMemory) {
    pool_.reserve(24 * mib);
    pool_.set_max_capacity(8 * mib);
    EXPECT_EQ(pool_.get_total_capacity(), 8 * mib);
    EXPECT_THROW(pool_.reserve(9 * mib), AllocationError);
}

TEST_P(PoolLimit, BelowTheBytesInUseItLimitsGrowthOnly) {
    for (const std::size_t bytes : sizes) {
        pool_.set_max_capacity(0);
        const std::vector<void*> blocks = testing::touched_blocks(pool_, 24 * mib, bytes);
        pool_.set_max_capacity(mib);
        EXPECT_GE(pool_.get_total_capacity(), pool_.get_total_allocated()) << bytes;
        EXPECT_EQ(pool_.try_allocate(8 * mib), nullptr) << bytes;
        EXPECT_EQ(static_cast<char*>(blocks.front())[0], 1) << bytes;
        free_all(pool_, blocks, bytes);
        pool_.trim();
        void* const block = pool_.try_allocate(mib);
        EXPECT_NE(block, nullptr) << bytes;
        pool_.deallocate(block);
    }
}

TEST_P(PoolLimit, ConcurrentAllocationsStayWithinTheHighestLimit) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 200; ++round) {
                for (const std::size_t bytes : sizes) {
                    void* const block = pool_.try_allocate(bytes);
                    pool_.deallocate(block);
                }
            }
        });
    }
    pool_.set_max_capacity(64 * mib);
    for (std::size_t round = 0; round < 200; ++round) pool_.set_max_capacity((1 + round % 9) * mib);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    EXPECT_EQ(pool_.statistics().limit_bytes, pool_.max_capacity());
    pool_.trim();
    pool_.set_max_capacity(4 * mib);
    EXPECT_LE(pool_.get_total_capacity(), 4 * mib);
}

TEST_P(PoolLimit, SetToTheCapacityKeepsParkedBlocks) {
    pool_.deallocate(pool_.allocate(1000), 1000);
    const auto parked = [this] {
        return pool_.statistics().buckets[detail::bucket_of(1000)].parked_bytes;
    };
    const std::size_t before = parked();
    pool_.set_max_capacity(pool_.get_total_capacity());
    EXPECT_EQ(parked(), before);
}

}  // namespace
}  // namespace tensorpool
