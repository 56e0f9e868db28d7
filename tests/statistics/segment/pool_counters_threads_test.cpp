#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/wait_until.hpp"

#include "statistics/own_counters.hpp"

namespace tensorpool::statistics {
namespace {

using detail::add;
using detail::add_release;

constexpr unsigned bucket = 2;
constexpr std::size_t block_bytes = detail::bucket_bytes(bucket);
constexpr std::size_t large_bytes = 100'000;

void count_allocation(detail::ThreadCounters& counters) {
    add(counters.buckets[bucket].taken, 1);
    add(counters.buckets[bucket].requested_bytes, block_bytes);
    add(counters.buckets[bucket].allocations, 1);
    add(counters.large.allocations, 1);
    add(counters.large.allocated_bytes, large_bytes);
}

void count_deallocation(detail::ThreadCounters& counters) {
    add_release(counters.buckets[bucket].deallocations, 1);
    add_release(counters.large.deallocations, 1);
    add_release(counters.large.deallocated_bytes, large_bytes);
}

/// Threads that count until the object is destroyed. The allocating thread counts the next block
/// before the other one may free the previous one. At any moment, 1 to 3 blocks are therefore in
/// use.
class Writers {
public:
    explicit Writers(PoolCounters& pool) : pool_(pool) {
        count_allocation(*pool_.take()->counters);  // a block that is never freed
        threads_.emplace_back([this] { allocate(); });
        threads_.emplace_back([this] { free_what_the_other_allocated(); });
        testing::wait_until("a block was handed over", [this] { return handed_over_ != 0; });
    }
    ~Writers() {
        stop_ = true;
        for (std::thread& thread : threads_) thread.join();
    }

private:
    void allocate() {
        detail::ThreadCounters& counters = *pool_.take()->counters;
        while (!stop_) {
            if (handed_over_ - freed_ >= 2) {
                std::this_thread::yield();
                continue;
            }
            count_allocation(counters);
            ++handed_over_;
        }
    }
    void free_what_the_other_allocated() {
        detail::ThreadCounters& counters = *pool_.take()->counters;
        while (!stop_) {
            if (handed_over_ == freed_) {
                std::this_thread::yield();
                continue;
            }
            count_deallocation(counters);
            ++freed_;
        }
    }

    PoolCounters& pool_;
    std::atomic<std::uint64_t> handed_over_ = 0;
    std::atomic<std::uint64_t> freed_ = 0;
    std::atomic<bool> stop_ = false;
    std::vector<std::thread> threads_;
};

// Between the two halves of a sum any number of blocks may be allocated, so there is no upper
// bound.
TEST(PoolCountersThreads, SnapshotNeverUnderstatesBytesInUse) {
    testing::OwnCounters pool;
    const Writers writers(pool);
    for (int snapshot = 0; snapshot < 20'000; ++snapshot) {
        const PoolStatistics statistics = pool.statistics();
        ASSERT_GT(statistics.buckets[bucket].allocations, statistics.buckets[bucket].deallocations);
        ASSERT_GE(statistics.buckets[bucket].in_use_bytes, block_bytes);
        ASSERT_GT(statistics.large.allocations, statistics.large.deallocations);
        ASSERT_GE(statistics.large.in_use_bytes, large_bytes);
    }
}

TEST(PoolCountersThreads, InUseBytesNeverUnderstate) {
    testing::OwnCounters pool;
    const Writers writers(pool);
    for (int look = 0; look < 20'000; ++look) {
        ASSERT_GE(pool.in_use_bytes(), block_bytes + large_bytes);
    }
}

TEST(PoolCountersThreads, ShortThreadsLoseNoCounts) {
    constexpr unsigned threads = 4;
    constexpr unsigned rounds = 500;
    testing::OwnCounters pool;
    std::vector<std::thread> workers;
    for (unsigned thread = 0; thread < threads; ++thread) {
        workers.emplace_back([&pool] {
            for (unsigned round = 0; round < rounds; ++round) {
                OwnedCounters* const owned = pool.take();
                count_allocation(*owned->counters);
                count_deallocation(*owned->counters);
                pool.give_back(*owned);
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(pool.allocations(), 2 * threads * rounds);
    EXPECT_EQ(pool.deallocations(), 2 * threads * rounds);
    EXPECT_EQ(pool.in_use_bytes(), 0U);
    EXPECT_EQ(pool.taken_count(), 0U);
}

}  // namespace
}  // namespace tensorpool::statistics
