// Pool::statistics over a pool's life; how counters are summed is tried in tests/statistics.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "pool/check_levels.hpp"
#include "pool/fill.hpp"

namespace tensorpool {
namespace {

using testing::free_all;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

class PoolFigures : public ::testing::TestWithParam<Checks> {
protected:
    MemoryPool pool_{PoolOptions{.name = "mine", .max_capacity = 256 * mib, .checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolFigures, testing::all_check_levels(), testing::name_of_level);

TEST_P(PoolFigures, NewPoolShowsNothingButItsNameAndLimit) {
    const PoolStatistics figures = pool_.statistics();
    EXPECT_EQ(figures.version, PoolStatistics::current_version);
    EXPECT_STREQ(figures.name, "mine");
    EXPECT_EQ(figures.limit_bytes, 256 * mib);
    for (std::size_t bucket = 0; bucket < figures.buckets.size(); ++bucket) {
        EXPECT_EQ(figures.buckets[bucket].block_bytes, std::size_t{64} << bucket);
    }
    EXPECT_EQ(figures.in_use_bytes + figures.capacity_bytes + figures.allocations +
                  figures.growths + figures.threads + figures.peak_in_use_bytes + figures.failures,
              0U);
}

TEST_P(PoolFigures, EveryRequestIsCountedAsAskedAndAsHandedOut) {
    std::uint64_t asked = 0;
    std::uint64_t handed_out = 0;
    std::vector<void*> blocks;
    for (std::size_t bytes = 1; bytes < 2 * mib; bytes = bytes * 3 / 2 + 1) {
        blocks.push_back(pool_.allocate(bytes));
        asked += bytes;
        handed_out += pool_.usable_size(blocks.back());
    }
    PoolStatistics figures = pool_.statistics();
    EXPECT_EQ(figures.requested_bytes, asked);
    EXPECT_EQ(figures.allocated_bytes, handed_out);
    EXPECT_EQ(figures.in_use_bytes, handed_out);
    EXPECT_EQ(figures.allocations, blocks.size());
    free_all(pool_, blocks, 0);
    figures = pool_.statistics();
    EXPECT_EQ(figures.requested_bytes, asked);
    EXPECT_EQ(figures.allocated_bytes, handed_out);
    EXPECT_EQ(figures.in_use_bytes, 0U);
    EXPECT_EQ(figures.deallocations, blocks.size());
}

TEST_P(PoolFigures, AlignedRequestCountsWhatWasAskedNotItsAlignment) {
    pool_.deallocate(pool_.allocate(10, 2048));
    pool_.deallocate(pool_.allocate(10, 4096));
    EXPECT_EQ(pool_.statistics().requested_bytes, 20U);
    EXPECT_EQ(pool_.statistics().allocated_bytes, 2048U + 4096U);
}

TEST_P(PoolFigures, BucketsAndLargeBlocksAddUpToThePool) {
    std::vector<void*> blocks;
    for (std::size_t bytes = 1; bytes < 3 * mib; bytes *= 2) {
        for (unsigned i = 0; i < 3; ++i) blocks.push_back(pool_.allocate(bytes));
    }
    for (unsigned i = 0; i < 40; ++i) {
        pool_.deallocate(blocks.back());
        blocks.pop_back();
    }
    const PoolStatistics figures = pool_.statistics();
    BucketStatistics sum{};
    for (const BucketStatistics& bucket : figures.buckets) {
        sum.in_use_bytes += bucket.in_use_bytes;
        sum.parked_bytes += bucket.parked_bytes;
        sum.allocations += bucket.allocations;
        sum.deallocations += bucket.deallocations;
        sum.requested_bytes += bucket.requested_bytes;
        sum.allocated_bytes += bucket.allocated_bytes;
        sum.cache_hits += bucket.cache_hits;
        sum.cache_misses += bucket.cache_misses;
        EXPECT_EQ(bucket.cache_hits + bucket.cache_misses, bucket.allocations);
        EXPECT_LE(bucket.in_use_bytes + bucket.parked_bytes, bucket.capacity_bytes);
    }
    EXPECT_EQ(figures.in_use_bytes, sum.in_use_bytes + figures.large.in_use_bytes);
    EXPECT_EQ(figures.parked_bytes, sum.parked_bytes + figures.large.parked_bytes);
    EXPECT_EQ(figures.cached_bytes, figures.large.cached_bytes);
    EXPECT_EQ(figures.allocations, sum.allocations + figures.large.allocations);
    EXPECT_EQ(figures.deallocations, sum.deallocations + figures.large.deallocations);
    EXPECT_EQ(figures.requested_bytes, sum.requested_bytes + figures.large.requested_bytes);
    EXPECT_EQ(figures.allocated_bytes, sum.allocated_bytes + figures.large.allocated_bytes);
    EXPECT_EQ(figures.cache_hits, sum.cache_hits + figures.large.cache_hits);
    EXPECT_EQ(figures.cache_misses, sum.cache_misses + figures.large.cache_misses);
    EXPECT_EQ(figures.cache_hits + figures.cache_misses, figures.allocations);
    free_all(pool_, blocks, 0);
}

TEST_P(PoolFigures, CapacityIsWhatGrewLessWhatWasGivenBack) {
    free_all(pool_, {pool_.allocate(100), pool_.allocate(20 * mib)}, 0);
    PoolStatistics figures = pool_.statistics();
    EXPECT_EQ(figures.capacity_bytes, figures.grown_bytes);
    EXPECT_GE(figures.growths, 1U);
    EXPECT_LE(figures.capacity_bytes, figures.reserved_bytes);
    pool_.trim();
    figures = pool_.statistics();
    EXPECT_EQ(figures.capacity_bytes, 0U);
    EXPECT_EQ(figures.given_back_bytes, figures.grown_bytes);
    EXPECT_GE(figures.give_backs, 1U);
    EXPECT_GE(figures.peak_capacity_bytes, 20 * mib);
    EXPECT_GE(figures.peak_reserved_bytes, figures.peak_capacity_bytes);
    EXPECT_EQ(figures.reserved_bytes, 0U) << "its addresses were lent back";
}

TEST_P(PoolFigures, PeakStaysWhenBlocksAreFreed) {
    for (const std::size_t bytes : {100UL, 100 * kib}) {
        const std::vector<void*> blocks(testing::touched_blocks(pool_, 40 * mib, bytes));
        const std::uint64_t most = pool_.statistics().in_use_bytes;
        free_all(pool_, blocks, bytes);
        const PoolStatistics figures = pool_.statistics();
        EXPECT_EQ(figures.in_use_bytes, 0U);
        EXPECT_GE(figures.peak_in_use_bytes, most);
        // What one thread's caches may park, and what is rounded there.
        EXPECT_LE(figures.peak_in_use_bytes, 53 * mib + 6 * mib);
    }
}

TEST_P(PoolFigures, AllReturnToZeroWhenEverythingIsFreedOnAnyThread) {
    std::vector<std::vector<void*>> blocks(4);
    std::vector<std::thread> threads;
    for (std::vector<void*>& mine : blocks) {
        threads.emplace_back([&] {
            for (std::size_t bytes = 1; bytes < mib; bytes = bytes * 5 / 4 + 1) {
                mine.push_back(pool_.allocate(bytes));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        threads.emplace_back([&, i] { free_all(pool_, blocks[(i + 1) % blocks.size()], 0); });
    }
    for (std::thread& thread : threads) thread.join();
    pool_.trim();
    const PoolStatistics figures = pool_.statistics();
    EXPECT_EQ(figures.allocations, figures.deallocations);
    EXPECT_EQ(figures.in_use_bytes, 0U);
    EXPECT_EQ(figures.parked_bytes, 0U);
    EXPECT_EQ(figures.cached_bytes, 0U);
    EXPECT_EQ(figures.free_bytes, 0U);
    EXPECT_EQ(figures.capacity_bytes, 0U);
    EXPECT_EQ(figures.lost_bytes, 0U);
    EXPECT_EQ(figures.threads, 0U);
    for (const BucketStatistics& bucket : figures.buckets) EXPECT_EQ(bucket.capacity_bytes, 0U);
}

// In use reads never below what it was: this thread's blocks are always seen.
TEST_P(PoolFigures, WhatIsInUseIsSeenWhileOthersWork) {
    std::vector<void*> held;
    for (unsigned i = 0; i < 100; ++i) held.push_back(pool_.allocate(10 * kib));
    const std::size_t in_use = pool_.get_total_allocated();
    std::thread other([this] {
        for (unsigned i = 0; i < 20'000; ++i) pool_.deallocate(pool_.allocate(i % (80 * kib) + 1));
    });
    for (unsigned i = 0; i < 2000; ++i) {
        const PoolStatistics figures = pool_.statistics();
        EXPECT_GE(figures.in_use_bytes, in_use);
        EXPECT_GE(figures.peak_in_use_bytes, figures.in_use_bytes);
        EXPECT_GE(figures.allocations, figures.deallocations);
    }
    other.join();
    EXPECT_EQ(pool_.get_total_allocated(), in_use);
    free_all(pool_, held, 0);
}

TEST_P(PoolFigures, PrintAsOneJsonObjectAndAsText) {
    pool_.deallocate(pool_.allocate(100));
    pool_.deallocate(pool_.allocate(100 * kib));
    const std::string json = to_json(pool_.statistics());
    EXPECT_EQ(json.find("{\"version\":2,\"name\":\"mine\","), 0U) << json;
    EXPECT_NE(json.find("\"limit_bytes\":268435456,"), std::string::npos);
    EXPECT_NE(json.find("\"requested_bytes\":102500,"), std::string::npos);
    const std::string text = to_text(pool_.statistics());
    EXPECT_EQ(text.find("tensorpool: pool 'mine'\n"), 0U) << text;
    EXPECT_NE(text.find("2 allocations, 2 deallocations, 0 failures"), std::string::npos) << text;
    EXPECT_EQ(text.back(), '\n');
}

TEST_P(PoolFigures, PrintForPrometheusUnderThePoolsName) {
    pool_.deallocate(pool_.allocate(100));
    const std::string text = to_prometheus(pool_.statistics());
    EXPECT_NE(text.find("# TYPE tensorpool_requested_bytes_total counter\n"), std::string::npos);
    EXPECT_NE(text.find("pool=\"mine\"} 100\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("tensorpool_process"), std::string::npos) << "of the pool only";
}

// Caches -----------------------------------------------------------------------------------------

TEST(PoolCaches, ThreadsWithACacheAreCountedWhileTheyLive) {
    MemoryPool pool(PoolOptions{.checks = Checks::off});
    pool.deallocate(pool.allocate(100), 100);
    EXPECT_EQ(pool.statistics().threads, 1U);
    std::thread([&] {
        pool.deallocate(pool.allocate(100), 100);
        EXPECT_EQ(pool.statistics().threads, 2U);
    }).join();
    EXPECT_EQ(pool.statistics().threads, 1U);
}

TEST(PoolCaches, BlockFreedAndAskedForAgainIsAHit) {
    MemoryPool pool(PoolOptions{.checks = Checks::off});
    for (const std::size_t bytes : {1000UL, 300 * kib})
        pool.deallocate(pool.allocate(bytes), bytes);
    const PoolStatistics before = pool.statistics();
    for (const std::size_t bytes : {1000UL, 300 * kib}) {
        for (unsigned i = 0; i < 100; ++i) pool.deallocate(pool.allocate(bytes), bytes);
    }
    const PoolStatistics after = pool.statistics();
    EXPECT_EQ(after.cache_hits, before.cache_hits + 200);
    EXPECT_EQ(after.cache_misses, before.cache_misses);
    EXPECT_GE(after.parked_bytes, 1024 + 300 * kib);
    EXPECT_GE(after.large.parked_bytes, 300 * kib);
}

}  // namespace
}  // namespace tensorpool
