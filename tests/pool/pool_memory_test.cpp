// Free memory: limits, reserve, trim, retention.

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/timeline.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "pool/check_levels.hpp"
#include "pool/fill.hpp"
#include "pool/pool.hpp"

namespace tensorpool {
namespace {

using testing::fill;
using testing::free_all;
using testing::sizes;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t tib = mib * mib;

class PoolMemory : public ::testing::TestWithParam<Checks> {
protected:
    PoolOptions limited(std::size_t max_capacity) const {
        return {.max_capacity = max_capacity, .checks = GetParam()};
    }
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolMemory, testing::check_levels(), testing::name_of_level);

// Limits -----------------------------------------------------------------------------------------

TEST_P(PoolMemory, CapacityReachesItsLimitAndNeverExceedsIt) {
    for (const std::size_t bytes : sizes) {
        MemoryPool pool(limited(16 * mib));
        const std::vector<void*> blocks = fill(pool, bytes);
        const PoolStatistics values = pool.statistics();
        EXPECT_LE(values.peak_capacity_bytes, 16 * mib) << bytes;
        // The rest is less than one more block needs.
        EXPECT_GE(values.in_use_bytes + values.in_use_bytes / 50 + bytes + 4 * kib, 15 * mib)
            << bytes;
        free_all(pool, blocks, bytes);
        EXPECT_EQ(pool.get_total_allocated(), 0U);
    }
}

TEST_P(PoolMemory, LimitOfOnePageServesThatPage) {
    MemoryPool pool(limited(4 * kib));
    void* const block = pool.allocate(100);
    EXPECT_EQ(pool.try_allocate(4097), nullptr);
    pool.deallocate(block, 100);
    void* const page = pool.try_allocate(100, 4 * kib);
    EXPECT_NE(page, nullptr);
    pool.deallocate(page);
    EXPECT_EQ(MemoryPool(limited(1)).try_allocate(1), nullptr);
}

TEST_P(PoolMemory, FreedMemoryOfOneSizeServesEveryOther) {
    for (const std::size_t freed : sizes) {
        for (const std::size_t wanted : sizes) {
            MemoryPool pool(limited(16 * mib));
            free_all(pool, fill(pool, freed), freed);
            const std::vector<void*> blocks = fill(pool, wanted);
            EXPECT_GE(pool.get_total_allocated(), 12 * mib) << freed << " then " << wanted;
            free_all(pool, blocks, wanted);
        }
    }
}

TEST_P(PoolMemory, FreedSmallBlocksServeOneLargeBlock) {
    MemoryPool pool(limited(64 * mib));
    free_all(pool, fill(pool, 64), 64);
    void* const block = pool.try_allocate(48 * mib);
    ASSERT_NE(block, nullptr);
    pool.deallocate(block, 48 * mib);
}

TEST_P(PoolMemory, SmallBlocksFreedByAnEndedThreadServeOneLargeBlock) {
    MemoryPool pool(limited(64 * mib));
    std::vector<void*> blocks;
    std::thread([&] { blocks = fill(pool, 64); }).join();
    std::thread([&] { free_all(pool, blocks, 64); }).join();
    void* const block = pool.try_allocate(48 * mib);
    ASSERT_NE(block, nullptr);
    pool.deallocate(block, 48 * mib);
}

TEST_P(PoolMemory, FailedRequestChangesNoBlocksAndTotals) {
    for (const std::size_t bytes : sizes) {
        MemoryPool pool(limited(16 * mib));
        const std::vector<void*> blocks = fill(pool, bytes);
        for (void* const block : blocks) std::memset(block, 0x5A, bytes);
        const PoolStatistics before = pool.statistics();
        EXPECT_EQ(pool.try_allocate(8 * mib), nullptr);
        EXPECT_EQ(pool.try_allocate(bytes), nullptr);
        EXPECT_THROW(pool.allocate(8 * mib, 4096), AllocationError);
        const PoolStatistics after = pool.statistics();
        EXPECT_EQ(after.failures, before.failures + 3);
        EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
        EXPECT_EQ(after.peak_in_use_bytes, before.peak_in_use_bytes);
        EXPECT_EQ(after.allocations, before.allocations);
        EXPECT_EQ(after.deallocations, before.deallocations);
        EXPECT_EQ(after.requested_bytes, before.requested_bytes);
        EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
        EXPECT_EQ(after.cache_hits, before.cache_hits);
        EXPECT_EQ(after.cache_misses, before.cache_misses);
        for (void* const block : blocks) {
            EXPECT_EQ(static_cast<unsigned char*>(block)[bytes - 1], 0x5A);
        }
        free_all(pool, blocks, bytes);
    }
}

TEST_P(PoolMemory, RequestAboveMaxAllocationChangesOnlyFailures) {
    MemoryPool pool(PoolOptions{.max_allocation = mib, .checks = GetParam()});
    free_all(pool, {pool.allocate(100), pool.allocate(100)}, 100);
    free_all(pool, {pool.allocate(mib)}, mib);
    PoolStatistics before = pool.statistics();
    EXPECT_EQ(pool.try_allocate(mib + 1), nullptr);
    before.failures += 1;
    before.failures_by_limit[static_cast<unsigned>(LimitKind::request)] += 1;
    EXPECT_EQ(to_json(pool.statistics()), to_json(before));
}

// Reserve ----------------------------------------------------------------------------------------

// ctest runs each test of this suite in a process of its own, so the address space is not set up
// yet.
TEST(PoolReserve, ReachesALimitThatIsNotAMultipleOfThePageSize) {
    constexpr std::size_t limit = 10'000'000;
    const MemoryPool pool(PoolOptions{.initial_capacity = limit, .max_capacity = limit});
    EXPECT_LE(pool.get_total_capacity(), limit);
    EXPECT_GT(pool.get_total_capacity() + 4 * kib, limit);
}

TEST(PoolReserve, BeyondTheAddressSpaceFails) {
    MemoryPool pool;
    for (const std::size_t bytes : {16 * tib + 4096, 2 * tib, SIZE_MAX}) {
        EXPECT_THROW(pool.reserve(bytes), AllocationError) << bytes;
    }
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

TEST_P(PoolMemory, ReserveCommitsUpToTheTotalCapacity) {
    MemoryPool pool(limited(32 * mib));
    pool.reserve(10 * mib);
    EXPECT_EQ(pool.get_total_capacity(), 10 * mib);
    pool.reserve(5 * mib);
    EXPECT_EQ(pool.get_total_capacity(), 10 * mib);
    void* const block = pool.allocate(6 * mib);
    EXPECT_EQ(pool.get_total_capacity(), 10 * mib);
    pool.reserve(32 * mib);
    EXPECT_EQ(pool.get_total_capacity(), 32 * mib);
    pool.deallocate(block);
}

TEST_P(PoolMemory, ReserveAboveTheLimitThrowsAndChangesNothing) {
    MemoryPool pool(limited(32 * mib));
    pool.reserve(10 * mib);
    PoolStatistics before = pool.statistics();
    EXPECT_THROW(pool.reserve(32 * mib + 1), AllocationError);
    before.failures += 1;
    before.failures_by_limit[static_cast<unsigned>(LimitKind::capacity)] += 1;
    EXPECT_EQ(to_json(pool.statistics()), to_json(before));
}

TEST_P(PoolMemory, ReservedMemoryStaysUntilTrim) {
    MemoryPool pool(PoolOptions{.retain = {.bytes = 0}, .checks = GetParam()});
    pool.reserve(16 * mib);
    free_all(pool, {pool.allocate(10 * mib)}, 10 * mib);
    free_all(pool, {pool.allocate(100 * kib), pool.allocate(100 * kib)}, 100 * kib);
    EXPECT_GE(pool.get_total_capacity(), 16 * mib);
    EXPECT_GE(pool.trim(), 16 * mib);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
    free_all(pool, {pool.allocate(10 * mib)}, 10 * mib);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

// Trim -------------------------------------------------------------------------------------------

TEST_P(PoolMemory, TrimReturnsAllMemoryOfAnIdlePool) {
    for (const std::size_t bytes : sizes) {
        MemoryPool pool(limited(16 * mib));
        free_all(pool, fill(pool, bytes), bytes);
        const std::size_t capacity = pool.get_total_capacity();
        EXPECT_EQ(pool.trim(), capacity) << bytes;
        const PoolStatistics values = pool.statistics();
        EXPECT_EQ(values.capacity_bytes, 0U);
        EXPECT_EQ(values.parked_bytes, 0U);
        EXPECT_EQ(values.cached_bytes, 0U);
        EXPECT_EQ(values.free_bytes, 0U);
        EXPECT_EQ(values.given_back_bytes, values.grown_bytes);
        EXPECT_EQ(pool.trim(), 0U);
    }
}

TEST_P(PoolMemory, TrimKeepsBlocksInUse) {
    MemoryPool pool(PoolOptions{.checks = GetParam()});
    for (const std::size_t bytes : sizes) {
        std::vector<void*> blocks;
        for (unsigned i = 0; i < 40; ++i) blocks.push_back(pool.allocate(bytes));
        for (void* const block : blocks) std::memset(block, 0x5A, bytes);
        for (unsigned i = 1; i < 40; i += 2) pool.deallocate(blocks[i], bytes);
        pool.trim();
        for (unsigned i = 1; i < 40; i += 2) blocks[i] = pool.allocate(bytes);
        for (unsigned i = 0; i < 40; i += 2) {
            EXPECT_EQ(static_cast<unsigned char*>(blocks[i])[bytes - 1], 0x5A);
        }
        free_all(pool, blocks, bytes);
    }
    pool.trim();
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

// Retention --------------------------------------------------------------------------------------

TEST_P(PoolMemory, KeepsNoMoreFreeMemoryThanRetained) {
    for (const std::size_t bytes : sizes) {
        MemoryPool pool(PoolOptions{.max_capacity = 64 * mib,
                                    .retain = {.bytes = 8 * mib, .milliseconds = UINT32_MAX},
                                    .checks = GetParam()});
        free_all(pool, fill(pool, bytes), bytes);
        const PoolStatistics values = pool.statistics();
        EXPECT_LE(values.cached_bytes + values.free_bytes, 8 * mib) << bytes;
    }
}

// The peak capacity after phases of different sizes. Parked blocks, at most 4 MiB, count as in use
// here.
std::size_t peak_after_phases(MemoryPool& pool, std::size_t bytes, bool shuffled) {
    std::mt19937 random(1);
    for (std::size_t size = 64; size <= 64 * kib; size *= 2) {
        std::vector<void*> blocks(bytes / size);
        for (void*& block : blocks) block = pool.allocate(size);
        if (shuffled) std::shuffle(blocks.begin(), blocks.end(), random);
        for (void* const block : blocks) pool.deallocate(block, size);
    }
    return pool.statistics().peak_capacity_bytes;
}

TEST_P(PoolMemory, PhasesOfDifferentSizesShareTheirMemory) {
    for (const bool shuffled : {false, true}) {
        MemoryPool pool(PoolOptions{.checks = GetParam()});
        EXPECT_LE(peak_after_phases(pool, 32 * mib, shuffled), 32 * mib * 13 / 10) << shuffled;
    }
}

TEST_P(PoolMemory, DepotsCountAgainstRetention) {
    MemoryPool pool(PoolOptions{.retain = {.bytes = mib}, .checks = GetParam()});
    (void)peak_after_phases(pool, 32 * mib, false);
    EXPECT_EQ(pool.statistics().in_use_bytes, 0U);
    EXPECT_LE(pool.statistics().capacity_bytes, 6 * mib) << "the thread keeps up to 4 MiB of it";
}

// A tenth of the blocks stays, spread over all spans. Then half of it is repeatedly freed and
// allocated again, at random.
TEST_P(PoolMemory, AllocationsAfterPartialFreesFillTheFullestSpans) {
    for (const std::size_t size : {std::size_t{64}, kib, 8 * kib, 64 * kib}) {
        MemoryPool pool(PoolOptions{.checks = GetParam()});
        std::mt19937 random(2);
        std::vector<void*> blocks((size < kib ? 64 : 256) * mib / size);
        for (void*& block : blocks) block = pool.allocate(size);
        std::shuffle(blocks.begin(), blocks.end(), random);
        const auto free_behind = [&](std::size_t count) {
            for (std::size_t i = count; i < blocks.size(); ++i) pool.deallocate(blocks[i], size);
            blocks.resize(count);
        };
        const std::size_t alive = blocks.size() / 10;
        free_behind(alive);
        for (unsigned round = 0; round < 20; ++round) {
            std::shuffle(blocks.begin(), blocks.end(), random);
            free_behind(alive / 2);
            while (blocks.size() < alive) blocks.push_back(pool.allocate(size));
        }
        pool.trim();
        EXPECT_LE(pool.statistics().capacity_bytes, 2 * pool.statistics().in_use_bytes) << size;
        free_behind(0);
    }
}

TEST_P(PoolMemory, KeepsNoLargeBlocksWithRetentionOfZeroTime) {
    MemoryPool pool(PoolOptions{.retain = {.milliseconds = 0}, .checks = GetParam()});
    free_all(pool, {pool.allocate(10 * mib), pool.allocate(100 * kib)}, 0);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

TEST_P(PoolMemory, KeepsAllFreeMemoryByDefault) {
    MemoryPool pool(PoolOptions{.checks = GetParam()});
    free_all(pool, {pool.allocate(40 * mib), pool.allocate(30 * mib)}, 0);
    EXPECT_GE(pool.get_total_capacity(), 70 * mib);
}

TEST(TrimAllPools, ReturnsFreeMemoryOfEachWithoutCallbacks) {
    unsigned given_back = 0;
    MemoryPool first(PoolOptions{.on_event = [&](const PoolEvent& event) {
        given_back += event.kind == PoolEvent::Kind::give_back ? 1 : 0;
    }});
    MemoryPool second;
    testing::use(first);
    testing::use(second);
    const std::size_t capacity = first.get_total_capacity() + second.get_total_capacity();
    EXPECT_EQ(detail::trim_all_pools(), capacity);
    EXPECT_EQ(first.get_total_capacity() + second.get_total_capacity(), 0U);
    EXPECT_EQ(given_back, 0U);
}

}  // namespace
}  // namespace tensorpool
