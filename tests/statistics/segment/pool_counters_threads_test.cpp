#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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

/// Threads that count until the object goes. The one that allocates never lets a block be freed
/// before it counted the next, so that at any moment between 1 and 3 are in use.
class Writers {
public:
    explicit Writers(PoolCounters& slots) : slots_(slots) {
        count_allocation(*slots_.take()->counters);  // one that is never freed
        threads_.emplace_back([this] { allocate(); });
        threads_.emplace_back([this] { free_what_the_other_allocated(); });
        while (handed_over_ == 0) std::this_thread::yield();
    }
    ~Writers() {
        stop_ = true;
        for (std::thread& thread : threads_) thread.join();
    }

private:
    void allocate() {
        detail::ThreadCounters& counters = *slots_.take()->counters;
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
        detail::ThreadCounters& counters = *slots_.take()->counters;
        while (!stop_) {
            if (handed_over_ == freed_) {
                std::this_thread::yield();
                continue;
            }
            count_deallocation(counters);
            ++freed_;
        }
    }

    PoolCounters& slots_;
    std::atomic<std::uint64_t> handed_over_ = 0;
    std::atomic<std::uint64_t> freed_ = 0;
    std::atomic<bool> stop_ = false;
    std::vector<std::thread> threads_;
};

// Between the two halves of a sum any number of blocks may be allocated, so it has no upper bound.
TEST(CounterSlotsUnderThreads, SnapshotNeverUnderstatesBytesInUse) {
    testing::OwnCounters slots;
    const Writers writers(slots);
    for (int snapshot = 0; snapshot < 20'000; ++snapshot) {
        const PoolStatistics figures = slots.statistics();
        ASSERT_GT(figures.buckets[bucket].allocations, figures.buckets[bucket].deallocations);
        ASSERT_GE(figures.buckets[bucket].in_use_bytes, block_bytes);
        ASSERT_GT(figures.large.allocations, figures.large.deallocations);
        ASSERT_GE(figures.large.in_use_bytes, large_bytes);
    }
}

TEST(CounterSlotsUnderThreads, InUseBytesNeverUnderstate) {
    testing::OwnCounters slots;
    const Writers writers(slots);
    for (int look = 0; look < 20'000; ++look) {
        ASSERT_GE(slots.in_use_bytes(), block_bytes + large_bytes);
    }
}

TEST(CounterSlotsUnderThreads, ShortThreadsLoseNoCounts) {
    constexpr unsigned threads = 4;
    constexpr unsigned lives = 500;
    testing::OwnCounters slots;
    std::vector<std::thread> workers;
    for (unsigned thread = 0; thread < threads; ++thread) {
        workers.emplace_back([&slots] {
            for (unsigned life = 0; life < lives; ++life) {
                OwnedCounters* const slot = slots.take();
                count_allocation(*slot->counters);
                count_deallocation(*slot->counters);
                slots.give_back(*slot);
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(slots.allocations(), 2 * threads * lives);
    EXPECT_EQ(slots.deallocations(), 2 * threads * lives);
    EXPECT_EQ(slots.in_use_bytes(), 0U);
    EXPECT_EQ(slots.taken_count(), 0U);
}

}  // namespace
}  // namespace tensorpool::statistics
