// Pool::statistics over a pool's lifetime. How counters are summed is tested in tests/statistics.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <latch>
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

class PoolMetrics : public ::testing::TestWithParam<Checks> {
protected:
    MemoryPool pool_{PoolOptions{.name = "mine", .max_capacity = 256 * mib, .checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolMetrics, testing::check_levels(), testing::name_of_level);

TEST_P(PoolMetrics, NewPoolHasOnlyNameAndLimit) {
    const PoolStatistics values = pool_.statistics();
    EXPECT_EQ(values.version, PoolStatistics::current_version);
    EXPECT_STREQ(values.name, "mine");
    EXPECT_EQ(values.limit_bytes, 256 * mib);
    for (std::size_t bucket = 0; bucket < values.buckets.size(); ++bucket) {
        EXPECT_EQ(values.buckets[bucket].block_bytes, std::size_t{64} << bucket);
    }
    EXPECT_EQ(values.in_use_bytes + values.capacity_bytes + values.allocations + values.growths +
                  values.threads + values.peak_in_use_bytes + values.failures,
              0U);
}

TEST_P(PoolMetrics, RequestedAndAllocatedBytesAreCounted) {
    std::uint64_t requested = 0;
    std::uint64_t handed_out = 0;
    std::vector<void*> blocks;
    for (std::size_t bytes = 1; bytes < 2 * mib; bytes = bytes * 3 / 2 + 1) {
        blocks.push_back(pool_.allocate(bytes));
        requested += bytes;
        handed_out += pool_.usable_size(blocks.back());
    }
    PoolStatistics values = pool_.statistics();
    EXPECT_EQ(values.requested_bytes, requested);
    EXPECT_EQ(values.allocated_bytes, handed_out);
    EXPECT_EQ(values.in_use_bytes, handed_out);
    EXPECT_EQ(values.allocations, blocks.size());
    free_all(pool_, blocks, 0);
    values = pool_.statistics();
    EXPECT_EQ(values.requested_bytes, requested);
    EXPECT_EQ(values.allocated_bytes, handed_out);
    EXPECT_EQ(values.in_use_bytes, 0U);
    EXPECT_EQ(values.deallocations, blocks.size());
}

TEST_P(PoolMetrics, AlignedRequestCountsTheRequestNotItsAlignment) {
    pool_.deallocate(pool_.allocate(10, 2048));
    pool_.deallocate(pool_.allocate(10, 4096));
    EXPECT_EQ(pool_.statistics().requested_bytes, 20U);
    EXPECT_EQ(pool_.statistics().allocated_bytes, 2048U + 4096U);
}

TEST_P(PoolMetrics, BucketsAndLargeBlocksAddUpToThePool) {
    std::vector<void*> blocks;
    for (std::size_t bytes = 1; bytes < 3 * mib; bytes *= 2) {
        for (unsigned i = 0; i < 3; ++i) blocks.push_back(pool_.allocate(bytes));
    }
    for (unsigned i = 0; i < 40; ++i) {
        pool_.deallocate(blocks.back());
        blocks.pop_back();
    }
    const PoolStatistics values = pool_.statistics();
    BucketStatistics sum{};
    for (const BucketStatistics& bucket : values.buckets) {
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
    EXPECT_EQ(values.in_use_bytes, sum.in_use_bytes + values.large.in_use_bytes);
    EXPECT_EQ(values.parked_bytes, sum.parked_bytes + values.large.parked_bytes);
    EXPECT_EQ(values.cached_bytes, values.large.cached_bytes);
    EXPECT_EQ(values.allocations, sum.allocations + values.large.allocations);
    EXPECT_EQ(values.deallocations, sum.deallocations + values.large.deallocations);
    EXPECT_EQ(values.requested_bytes, sum.requested_bytes + values.large.requested_bytes);
    EXPECT_EQ(values.allocated_bytes, sum.allocated_bytes + values.large.allocated_bytes);
    EXPECT_EQ(values.cache_hits, sum.cache_hits + values.large.cache_hits);
    EXPECT_EQ(values.cache_misses, sum.cache_misses + values.large.cache_misses);
    EXPECT_EQ(values.cache_hits + values.cache_misses, values.allocations);
    free_all(pool_, blocks, 0);
}

TEST_P(PoolMetrics, CapacityIsGrownLessGivenBackBytes) {
    free_all(pool_, {pool_.allocate(100), pool_.allocate(20 * mib)}, 0);
    PoolStatistics values = pool_.statistics();
    EXPECT_EQ(values.capacity_bytes, values.grown_bytes);
    EXPECT_GE(values.growths, 1U);
    EXPECT_LE(values.capacity_bytes, values.reserved_bytes);
    pool_.trim();
    values = pool_.statistics();
    EXPECT_EQ(values.capacity_bytes, 0U);
    EXPECT_EQ(values.given_back_bytes, values.grown_bytes);
    EXPECT_GE(values.give_backs, 1U);
    EXPECT_GE(values.peak_capacity_bytes, 20 * mib);
    EXPECT_GE(values.peak_reserved_bytes, values.peak_capacity_bytes);
    EXPECT_EQ(values.reserved_bytes, 0U) << "its addresses were returned";
}

TEST_P(PoolMetrics, PeakStaysWhenBlocksAreFreed) {
    for (const std::size_t bytes : {100UL, 100 * kib}) {
        const std::vector<void*> blocks(testing::touched_blocks(pool_, 40 * mib, bytes));
        const std::uint64_t max_in_use = pool_.statistics().in_use_bytes;
        free_all(pool_, blocks, bytes);
        const PoolStatistics values = pool_.statistics();
        EXPECT_EQ(values.in_use_bytes, 0U);
        EXPECT_GE(values.peak_in_use_bytes, max_in_use);
        // The margin: what one thread's caches may park, and rounding.
        EXPECT_LE(values.peak_in_use_bytes, 53 * mib + 6 * mib);
    }
}

TEST_P(PoolMetrics, PeakOfManyThreadsIsAtMostTheCapacity) {
    constexpr unsigned count = 60;
    std::latch freed(count);
    std::latch over(1);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i) {
        threads.emplace_back([&] {
            free_all(pool_, {pool_.allocate(100 * kib), pool_.allocate(kib)}, 0);
            freed.count_down();
            over.wait();
        });
    }
    freed.wait();
    const PoolStatistics values = pool_.statistics();
    over.count_down();
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(values.peak_in_use_bytes, values.peak_capacity_bytes);
    EXPECT_GE(values.peak_in_use_bytes, 101 * kib);
}

TEST_P(PoolMetrics, AllReturnToZeroAfterFreesOnAnyThread) {
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
    const PoolStatistics values = pool_.statistics();
    EXPECT_EQ(values.allocations, values.deallocations);
    EXPECT_EQ(values.in_use_bytes, 0U);
    EXPECT_EQ(values.parked_bytes, 0U);
    EXPECT_EQ(values.cached_bytes, 0U);
    EXPECT_EQ(values.free_bytes, 0U);
    EXPECT_EQ(values.capacity_bytes, 0U);
    EXPECT_EQ(values.lost_bytes, 0U);
    EXPECT_EQ(values.threads, 0U);
    for (const BucketStatistics& bucket : values.buckets) EXPECT_EQ(bucket.capacity_bytes, 0U);
}

// The bytes in use never read lower than this thread's own blocks.
TEST_P(PoolMetrics, OwnBlocksInUseAreSeenWhileOthersWork) {
    std::vector<void*> held;
    for (unsigned i = 0; i < 100; ++i) held.push_back(pool_.allocate(10 * kib));
    const std::size_t in_use = pool_.get_total_allocated();
    std::thread other([this] {
        for (unsigned i = 0; i < 20'000; ++i) pool_.deallocate(pool_.allocate(i % (80 * kib) + 1));
    });
    for (unsigned i = 0; i < 2000; ++i) {
        const PoolStatistics values = pool_.statistics();
        EXPECT_GE(values.in_use_bytes, in_use);
        EXPECT_GE(values.peak_in_use_bytes, values.in_use_bytes);
        EXPECT_GE(values.allocations, values.deallocations);
    }
    other.join();
    EXPECT_EQ(pool_.get_total_allocated(), in_use);
    free_all(pool_, held, 0);
}

TEST_P(PoolMetrics, PrintAsOneJsonObjectAndAsText) {
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

TEST_P(PoolMetrics, PrintForPrometheusUnderThePoolsName) {
    pool_.deallocate(pool_.allocate(100));
    const std::string text = to_prometheus(pool_.statistics());
    EXPECT_NE(text.find("# TYPE tensorpool_requested_bytes_total counter\n"), std::string::npos);
    EXPECT_NE(text.find("pool=\"mine\"} 100\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("tensorpool_process"), std::string::npos) << "only metrics of the pool";
}

// Caches -----------------------------------------------------------------------------------------

TEST(PoolCaches, ThreadsWithACacheAreCountedUntilTheyEnd) {
    MemoryPool pool(PoolOptions{.checks = Checks::off});
    pool.deallocate(pool.allocate(100), 100);
    EXPECT_EQ(pool.statistics().threads, 1U);
    std::thread([&] {
        pool.deallocate(pool.allocate(100), 100);
        EXPECT_EQ(pool.statistics().threads, 2U);
    }).join();
    EXPECT_EQ(pool.statistics().threads, 1U);
}

TEST(PoolCaches, AllocationAfterFreeIsAHit) {
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
