// Idle threads: the blocks that they keep are bounded and are available to other threads.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "pool/fill.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"
#include "support/without_fences_linux.hpp"

namespace tensorpool {
namespace {

using testing::holds_in_child;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

/// Threads that used all eleven buckets and sleep until this object is destroyed.
class IdleThreads {
public:
    IdleThreads(MemoryPool& pool, unsigned count) : done_(count + 1), over_(count + 1) {
        for (unsigned i = 0; i < count; ++i) {
            threads_.emplace_back([&] {
                use_all_buckets(pool);
                done_.arrive_and_wait();
                over_.arrive_and_wait();
                use_all_buckets(pool);
            });
        }
        done_.arrive_and_wait();
    }
    ~IdleThreads() {
        over_.arrive_and_wait();
        for (std::thread& thread : threads_) thread.join();
    }
    IdleThreads(const IdleThreads&) = delete;
    IdleThreads& operator=(const IdleThreads&) = delete;

private:
    static void use_all_buckets(MemoryPool& pool) {
        for (std::size_t bytes = 64; bytes <= 64 * kib; bytes *= 2) {
            std::vector<void*> blocks;
            for (int i = 0; i < 8; ++i) {
                blocks.push_back(pool.allocate(bytes));
                std::memset(blocks.back(), i, bytes);
            }
            for (int i = 0; i < 8; ++i) {
                const auto* const begin = static_cast<const unsigned char*>(blocks[i]);
                EXPECT_EQ(begin[0], i);
                EXPECT_EQ(begin[bytes - 1], i);
                pool.deallocate(blocks[i], bytes);
            }
        }
    }

    std::barrier<> done_;
    std::barrier<> over_;
    std::vector<std::thread> threads_;
};

std::size_t max_parked(unsigned threads) {
    return std::max(1U, std::thread::hardware_concurrency()) * 4 * mib + threads * 64 * kib;
}

TEST(PoolIdleThreads, ParkABoundedAmount) {
    MemoryPool pool(PoolOptions{.name = "idle"});
    const IdleThreads threads(pool, 1000);
    EXPECT_GT(pool.statistics().parked_bytes, 0U);
    EXPECT_LE(pool.statistics().parked_bytes, max_parked(1000));
    EXPECT_EQ(pool.statistics().in_use_bytes, 0U);
}

TEST(PoolIdleThreads, TrimReturnsTheirBlocks) {
    MemoryPool pool(PoolOptions{.name = "idle"});
    const IdleThreads threads(pool, 100);
    pool.trim();
    EXPECT_EQ(pool.statistics().parked_bytes, 0U);
    EXPECT_EQ(pool.statistics().capacity_bytes, 0U);
}

TEST(PoolIdleThreads, AreNoReasonToRefuse) {
    MemoryPool pool(PoolOptions{.name = "idle", .max_capacity = 64 * mib});
    const IdleThreads threads(pool, 200);
    ASSERT_GT(pool.statistics().parked_bytes, mib);
    void* const block = pool.try_allocate(63 * mib);
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(pool.statistics().parked_bytes, 0U);
    pool.deallocate(block);
}

TEST(PoolIdleThreads, LimitHoldsInTheChildOfAFork) {
    if (testing::sanitized()) GTEST_SKIP() << "a fork holds more locks than the sanitizer counts";
    MemoryPool pool(PoolOptions{.name = "idle"});
    const IdleThreads threads(pool, 50);
    EXPECT_TRUE(holds_in_child([&] {
        const IdleThreads of_child(pool, 50);
        const bool bounded = pool.statistics().parked_bytes <= max_parked(50);
        pool.trim();
        return bounded && pool.statistics().parked_bytes == 0;
    }));
}

TEST(PoolIdleThreads, LimitHoldsWithoutFencesOfAllThreads) {
    EXPECT_TRUE(holds_in_child([] {
        if (!testing::forbid_fences()) return false;
        MemoryPool pool(PoolOptions{.name = "idle"});
        const IdleThreads threads(pool, 200);
        const PoolStatistics values = pool.statistics();
        pool.trim();
        // Their parked blocks cannot be taken back.
        return values.parked_bytes > 0 && values.parked_bytes <= max_parked(200) &&
               values.in_use_bytes == 0 && pool.statistics().parked_bytes == values.parked_bytes;
    }));
}

TEST(PoolIdleThreads, AreReportedWithoutFencesOfAllThreads) {
    EXPECT_TRUE(holds_in_child([] {
        if (!testing::forbid_fences()) return false;
        MemoryPool pool(PoolOptions{.max_capacity = 8 * mib});
        const IdleThreads threads(pool, 1);
        try {
            pool.allocate(8 * mib);
        } catch (const AllocationError& error) {
            return std::string(error.what()).find(" kept by other threads\n") !=
                       std::string::npos &&
                   error.free_in_pieces() == error.capacity();
        }
        return false;
    }));
}

}  // namespace
}  // namespace tensorpool
