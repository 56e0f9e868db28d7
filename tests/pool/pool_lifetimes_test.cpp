// Concurrent and successive pools, and threads that start and end while they exist.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "limits/commit_budget.hpp"
#include "pool/check_levels.hpp"
#include "pool/fill.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
using testing::sizes;
using testing::use;

class PoolLifetimes : public ::testing::TestWithParam<Checks> {
protected:
    PoolOptions options() const { return {.checks = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolLifetimes, testing::check_levels(), testing::name_of_level);

// Pools ------------------------------------------------------------------------------------------

TEST_P(PoolLifetimes, PoolsOwnTheirBlocksAndCountTheirCalls) {
    std::vector<std::unique_ptr<MemoryPool>> pools;
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 10; ++i) {
        pools.push_back(std::make_unique<MemoryPool>(options()));
        for (unsigned j = 0; j <= i; ++j) blocks.push_back(pools.back()->allocate(1000));
    }
    for (unsigned i = 0; i < 10; ++i) {
        EXPECT_EQ(pools[i]->get_allocation_count(), i + 1);
        const auto owned = [&](void* block) { return pools[i]->owns(block); };
        EXPECT_EQ(std::count_if(blocks.begin(), blocks.end(), owned), i + 1);
    }
    for (void* const block : blocks) {
        for (const auto& pool : pools) {
            if (pool->owns(block)) pool->deallocate(block, 1000);
        }
    }
    for (const auto& pool : pools) EXPECT_EQ(pool->get_total_allocated(), 0U);
}

TEST_P(PoolLifetimes, ThreeHundredPoolsWorkAtOnce) {
    const std::size_t before = limits::commit_budget().committed();
    {
        std::vector<std::unique_ptr<MemoryPool>> pools;
        std::vector<std::string*> blocks;
        for (unsigned i = 0; i < 300; ++i) {
            pools.push_back(std::make_unique<MemoryPool>(options()));
            blocks.push_back(new (pools[i]->allocate(sizeof(std::string))) std::string(50, 'p'));
            use(*pools[i]);
        }
        std::thread([&] {
            for (const auto& pool : pools) use(*pool);
        }).join();
        for (unsigned i = 0; i < 300; ++i) {
            EXPECT_TRUE(pools[i]->owns(blocks[i]));
            EXPECT_EQ(*blocks[i], std::string(50, 'p'));
            std::destroy_at(blocks[i]);
            pools[i]->deallocate(blocks[i], sizeof(std::string));
            EXPECT_EQ(pools[i]->get_allocation_count(), 13U);
            EXPECT_EQ(pools[i]->get_total_allocated(), 0U);
        }
    }
    EXPECT_EQ(limits::commit_budget().committed(), before);
}

TEST_P(PoolLifetimes, TwoThousandSuccessivePoolsLeaveNothing) {
    const std::size_t committed = limits::commit_budget().committed();
    for (unsigned i = 0; i < 10; ++i) use(*std::make_unique<MemoryPool>(options()));
    const testing::MemoryMetrics before = testing::memory_metrics();
    const std::size_t mappings = testing::mapping_count();
    for (unsigned i = 0; i < 2000; ++i) {
        MemoryPool pool(options());
        pool.deallocate(pool.allocate(1000), 1000);
        pool.deallocate(pool.allocate(100 * kib), 100 * kib);
    }
    EXPECT_EQ(limits::commit_budget().committed(), committed);
    if constexpr (!testing::sanitized()) {
        const testing::MemoryMetrics after = testing::memory_metrics();
        EXPECT_LE(after.resident, before.resident + mib);
        EXPECT_LE(after.address_space, before.address_space + mib);
        EXPECT_LE(testing::mapping_count(), mappings + 4);
    }
}

TEST_P(PoolLifetimes, MemoryOfADestroyedPoolReadsAsZerosInTheNext) {
    for (unsigned round = 0; round < 3; ++round) {
        MemoryPool pool(options());
        auto* const zeros = static_cast<char*>(pool.allocate_zeroed(3, mib));
        EXPECT_TRUE(std::all_of(zeros, zeros + 3 * mib, [](char byte) { return byte == 0; }));
        std::memset(zeros, 0xFF, 3 * mib);
        if (GetParam() == Checks::full) pool.deallocate(zeros);
    }
}

// Threads ----------------------------------------------------------------------------------------

TEST_P(PoolLifetimes, BlockMayBeFreedOnAnyThread) {
    MemoryPool pool(options());
    for (const std::size_t bytes : sizes) {
        std::vector<void*> blocks;
        for (unsigned i = 0; i < 300; ++i) blocks.push_back(pool.allocate(bytes));
        std::thread([&] { testing::free_all(pool, blocks, bytes); }).join();
        EXPECT_EQ(pool.get_total_allocated(), 0U);
        pool.trim();
        EXPECT_EQ(pool.get_total_capacity(), 0U) << bytes;
    }
}

TEST_P(PoolLifetimes, EndedThreadLeavesNothingParked) {
    MemoryPool pool(options());
    for (unsigned round = 0; round < 20; ++round) std::thread([&] { use(pool); }).join();
    const PoolStatistics values = pool.statistics();
    EXPECT_EQ(values.parked_bytes, 0U);
    EXPECT_EQ(values.threads, 0U);
    pool.trim();
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

TEST_P(PoolLifetimes, PoolMayBeDestroyedWhileThreadsHaveCaches) {
    auto first = std::make_unique<MemoryPool>(options());
    std::promise<void> used;
    std::promise<MemoryPool*> next;
    std::thread thread([&] {
        use(*first);
        used.set_value();
        use(*next.get_future().get());
    });
    used.get_future().wait();
    use(*first);
    first.reset();
    MemoryPool second(options());
    next.set_value(&second);
    use(second);
    thread.join();
    EXPECT_EQ(second.get_allocation_count(), 12U);
    EXPECT_EQ(second.get_total_allocated(), 0U);
}

/// Uses a pool in its destructor, when its thread ends.
struct UsesPoolAtItsEnd {
    MemoryPool* pool = nullptr;
    ~UsesPoolAtItsEnd() { use(*pool); }
};

TEST_P(PoolLifetimes, ThreadLocalDestructorsMayUseThePool) {
    MemoryPool pool(options());
    std::thread([&] {
        static thread_local UsesPoolAtItsEnd at_end;
        at_end.pool = &pool;
        use(pool);
    }).join();
    EXPECT_EQ(pool.get_allocation_count(), 12U);
    EXPECT_EQ(pool.statistics().parked_bytes, 0U);
}

TEST_P(PoolLifetimes, ThreadExitHandlersMayUseThePoolInEveryRound) {
    static MemoryPool* used = nullptr;
    static pthread_key_t key;
    MemoryPool pool(options());
    used = &pool;
    ASSERT_EQ(pthread_key_create(&key,
                                 [](void* rounds) {
                                     use(*used);
                                     if (rounds != &key)
                                         pthread_setspecific(key, static_cast<char*>(rounds) - 1);
                                 }),
              0);
    std::thread([&] {
        use(pool);
        // Four rounds in all. A sanitizer destroys its records of the thread in the last one.
        pthread_setspecific(key, reinterpret_cast<char*>(&key) + (testing::sanitized() ? 2 : 3));
    }).join();
    pthread_key_delete(key);
    EXPECT_GE(pool.get_allocation_count(), 12U);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
    EXPECT_EQ(pool.statistics().threads, 0U);
    pool.trim();
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

}  // namespace
}  // namespace tensorpool
