// Large blocks that threads keep: their reuse and their limits.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

#include "blocks/kept_large_blocks.hpp"
#include "pool/check_levels.hpp"
#include "support/child_process.hpp"
#include "support/without_fences_linux.hpp"

namespace tensorpool {
namespace {

using testing::holds_in_child;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

std::size_t parked(const MemoryPool& pool) {
    return pool.statistics().large.parked_bytes;
}

std::size_t max_parked() {
    return std::max(1U, std::thread::hardware_concurrency()) *
           blocks::LargeMagazine::bytes_per_processor;
}

class PoolLargeMagazines : public ::testing::TestWithParam<Checks> {
protected:
    MemoryPool pool_{PoolOptions{.checks = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Checks, PoolLargeMagazines, testing::check_levels(),
                         testing::name_of_level);

TEST_P(PoolLargeMagazines, FreedBlockIsKeptInTheThreadsMagazine) {
    void* const block = pool_.allocate(mib);
    pool_.deallocate(block, mib);
    EXPECT_EQ(parked(pool_), mib);
    EXPECT_EQ(pool_.statistics().in_use_bytes, 0U);
    EXPECT_EQ(pool_.statistics().parked_bytes, mib);
    const std::uint64_t hits = pool_.statistics().large.cache_hits;
    EXPECT_EQ(pool_.allocate(mib), block);
    EXPECT_EQ(pool_.statistics().large.cache_hits, hits + 1);
    EXPECT_EQ(parked(pool_), 0U);
    pool_.deallocate(block, mib);
}

TEST_P(PoolLargeMagazines, BlockAbove8MibIsNotKept) {
    pool_.deallocate(pool_.allocate(9 * mib), 9 * mib);
    EXPECT_EQ(parked(pool_), 0U);
}

TEST_P(PoolLargeMagazines, TrimEmptiesMagazines) {
    for (const std::size_t bytes : {128 * kib, mib, 8 * mib}) {
        pool_.deallocate(pool_.allocate(bytes), bytes);
    }
    pool_.trim();
    EXPECT_EQ(pool_.statistics().parked_bytes, 0U);
    EXPECT_EQ(pool_.get_total_capacity(), 0U);
}

TEST_P(PoolLargeMagazines, BlocksOfAnEndedThreadServeOthers) {
    void* block = nullptr;
    std::thread([&] {
        block = pool_.allocate(mib);
        pool_.deallocate(block, mib);
        EXPECT_EQ(parked(pool_), mib);
    }).join();
    EXPECT_EQ(parked(pool_), 0U);
    EXPECT_EQ(pool_.get_total_capacity(), pool_.statistics().free_bytes);
}

TEST_P(PoolLargeMagazines, PeakExceedsUseByAtMostTheParkedBytes) {
    pool_.deallocate(pool_.allocate(mib), mib);
    pool_.deallocate(pool_.allocate(2 * mib), 2 * mib);
    const PoolStatistics values = pool_.statistics();
    EXPECT_GE(values.peak_in_use_bytes, 2 * mib);
    EXPECT_LE(values.peak_in_use_bytes, 2 * mib + mib);
}

TEST_P(PoolLargeMagazines, DoubleFreeOfAParkedBlockIsDetected) {
    void* const block = pool_.allocate(mib);
    pool_.deallocate(block, mib);
    EXPECT_FALSE(pool_.owns(block));
    EXPECT_DEATH(pool_.deallocate(block, mib), "freed twice");
}

TEST(PoolLargeMagazinesOfThreads, TotalIsBoundedForManyThreads) {
    MemoryPool pool;
    constexpr unsigned count = 40;
    std::barrier<> done(count + 1);
    std::barrier<> over(count + 1);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i != count; ++i) {
        threads.emplace_back([&] {
            std::vector<void*> blocks(8);
            for (void*& block : blocks) block = pool.allocate(mib);
            for (void* const block : blocks) pool.deallocate(block, mib);
            done.arrive_and_wait();
            over.arrive_and_wait();
        });
    }
    done.arrive_and_wait();
    EXPECT_LE(parked(pool), max_parked());
    EXPECT_GT(parked(pool), 0U);
    pool.trim();
    EXPECT_EQ(parked(pool), 0U) << "blocks of other threads are taken back";
    over.arrive_and_wait();
    for (std::thread& thread : threads) thread.join();
}

TEST(PoolLargeMagazinesOfThreads, AreNoReasonToRefuse) {
    MemoryPool pool(PoolOptions{.max_capacity = 32 * mib});
    std::barrier<> done(2);
    std::barrier<> over(2);
    std::thread thread([&] {
        pool.deallocate(pool.allocate(8 * mib), 8 * mib);
        done.arrive_and_wait();
        over.arrive_and_wait();
    });
    done.arrive_and_wait();
    void* const block = pool.try_allocate(30 * mib);
    EXPECT_NE(block, nullptr);
    pool.deallocate(block);
    over.arrive_and_wait();
    thread.join();
}

// Without fences, other threads could not take parked blocks back, so none are parked.
TEST(PoolLargeMagazinesOfThreads, NothingIsParkedWithoutFencesOfAllThreads) {
    EXPECT_TRUE(holds_in_child([] {
        if (!testing::forbid_fences()) return false;
        MemoryPool pool(PoolOptions{.max_capacity = 32 * mib});
        std::barrier<> done(2);
        std::barrier<> over(2);
        std::thread thread([&] {
            pool.deallocate(pool.allocate(1000), 1000);
            done.arrive_and_wait();
            over.arrive_and_wait();
        });
        done.arrive_and_wait();
        pool.trim();  // detects that fences do not work
        pool.deallocate(pool.allocate(8 * mib), 8 * mib);
        over.arrive_and_wait();
        thread.join();
        if (parked(pool) != 0) return false;
        bool served = false;
        std::thread([&] {
            void* const block = pool.try_allocate(30 * mib);
            served = block != nullptr;
            pool.deallocate(block);
        }).join();
        return served;
    }));
}

TEST(PoolLargeMagazinesOfThreads, BlocksOfOneSizeStayWithinRetention) {
    MemoryPool pool(PoolOptions{.retain = {.bytes = 512 * kib}});
    std::vector<void*> blocks(4);
    for (void*& block : blocks) block = pool.allocate(256 * kib);
    for (void* const block : blocks) pool.deallocate(block, 256 * kib);
    const PoolStatistics values = pool.statistics();
    EXPECT_LE(values.parked_bytes + values.cached_bytes + values.free_bytes, 512 * kib);
    const std::size_t capacity = pool.get_total_capacity();
    EXPECT_EQ(pool.trim(), capacity) << "the returned bytes include parked blocks";
}

TEST(PoolLargeMagazinesOfThreads, BlockOfAnotherThreadIsTakenBeforeOwnBlocksAreReturned) {
    MemoryPool pool;
    void* const shared = pool.allocate(16 * mib);
    void* const own = pool.allocate(mib);
    pool.deallocate(shared, 16 * mib);  // too large to be parked
    pool.deallocate(own, mib);
    EXPECT_EQ(pool.allocate(16 * mib), shared);
    EXPECT_EQ(parked(pool), mib);
    pool.deallocate(shared, 16 * mib);
}

TEST(PoolLargeMagazinesOfThreads, ParkedBlocksStayWithinRetention) {
    MemoryPool pool(PoolOptions{.retain = {.bytes = 2 * mib}});
    for (const std::size_t bytes : {mib, 2 * mib, 4 * mib}) {
        pool.deallocate(pool.allocate(bytes), bytes);
    }
    const PoolStatistics values = pool.statistics();
    EXPECT_LE(values.parked_bytes + values.cached_bytes + values.free_bytes, 2 * mib);
}

TEST(PoolLargeMagazinesOfThreads, ChildCountsLargeBlocksParkedByOthersAsLost) {
    MemoryPool pool;
    std::barrier<> done(2);
    std::barrier<> over(2);
    std::thread thread([&] {
        pool.deallocate(pool.allocate(mib), mib);
        done.arrive_and_wait();
        over.arrive_and_wait();
    });
    done.arrive_and_wait();
    EXPECT_TRUE(holds_in_child([&] {
        const PoolStatistics values = pool.statistics();
        void* const block = pool.allocate(mib);
        pool.deallocate(block, mib);
        std::uint64_t placed = values.in_use_bytes + values.parked_bytes + values.depot_bytes +
                               values.span_bytes + values.cached_bytes + values.free_bytes;
        if (placed + values.lost_bytes != values.capacity_bytes) return false;
        return values.large.parked_bytes == 0 && values.lost_bytes == mib;
    }));
    over.arrive_and_wait();
    thread.join();
}

}  // namespace
}  // namespace tensorpool
