// Pools in the child of a fork.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "pool/check_levels.hpp"
#include "pool/fill.hpp"
#include "support/child_process.hpp"
#include "support/forced_shards.hpp"

namespace tensorpool {
namespace {

using testing::use;

class PoolFork : public ::testing::TestWithParam<Checks> {
protected:
    PoolOptions options() const { return {.checks = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolFork, testing::check_levels(), testing::name_of_level);

TEST_P(PoolFork, ChildUsesThePoolOfItsParent) {
    MemoryPool pool(options());
    auto* const block = new (pool.allocate(100)) std::string("from the parent, on its own heap");
    use(pool);
    EXPECT_TRUE(testing::holds_in_child([&] {
        if (!pool.owns(block) || *block != "from the parent, on its own heap") return false;
        use(pool);
        pool.deallocate(block, 100);
        MemoryPool own(options());
        use(own);
        return pool.get_total_allocated() == 0 && pool.trim() != 0 &&
               pool.get_total_capacity() == 0;
    }));
    EXPECT_TRUE(pool.owns(block));
    std::destroy_at(block);
    pool.deallocate(block, 100);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST_P(PoolFork, ChildCountsBlocksParkedByOtherThreadsAsLost) {
    MemoryPool pool(options());
    std::promise<void> used;
    std::promise<void> end;
    std::thread thread([&] {
        use(pool);
        used.set_value();
        end.get_future().wait();
    });
    used.get_future().wait();
    const PoolStatistics before = pool.statistics();
    EXPECT_TRUE(testing::holds_in_child([&] {
        const PoolStatistics values = pool.statistics();
        if (values.lost_bytes != before.parked_bytes || values.parked_bytes != 0) return false;
        if (values.in_use_bytes != 0 || values.threads != 0) return false;
        use(pool);
        return pool.get_total_allocated() == 0;
    }));
    EXPECT_EQ(pool.statistics().lost_bytes, 0U);
    end.set_value();
    thread.join();
}

// Whatever went through the quarantine, and whatever waits in it.
TEST(PoolForkHardened, ChildLosesWhatOtherThreadsParkedOnly) {
    MemoryPool pool({.checks = Checks::hardened, .quarantine_bytes = std::size_t{2} << 20});
    void* const block = pool.allocate(1000);
    const std::size_t own = pool.statistics().parked_bytes;
    std::promise<void> used;
    std::promise<void> end;
    std::thread thread([&] {
        for (int i = 0; i != 5000; ++i) pool.deallocate(pool.allocate(1000), 1000);
        used.set_value();
        end.get_future().wait();
    });
    used.get_future().wait();
    const std::size_t parked = pool.statistics().parked_bytes;
    EXPECT_GT(parked, own);
    const std::size_t pages = std::size_t{1} << 20;
    pool.deallocate(pool.allocate(pages), pages);
    EXPECT_GT(pool.statistics().quarantined_bytes, pages);
    EXPECT_TRUE(testing::holds_in_child([&] {
        const PoolStatistics values = pool.statistics();
        if (values.lost_bytes != parked - own || values.parked_bytes != own) return false;
        pool.deallocate(block, 1000);
        pool.trim();
        const PoolStatistics trimmed = pool.statistics();
        return trimmed.parked_bytes == 0 && trimmed.depot_bytes == 0 &&
               trimmed.lost_bytes == parked - own && trimmed.quarantined_bytes == 0;
    }));
    end.set_value();
    thread.join();
    pool.deallocate(block, 1000);
}

TEST_P(PoolFork, ChildUsesAllShardsOfItsParent) {
    const testing::ForcedShards forced(2);
    MemoryPool pool(options());
    use(pool);
    void* const block = pool.allocate(100);
    EXPECT_TRUE(testing::holds_in_child([&] {
        use(pool);
        pool.deallocate(block, 100);
        return pool.get_total_allocated() == 0 && pool.trim() != 0 &&
               pool.get_total_capacity() == 0;
    }));
    pool.deallocate(block, 100);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

// Not under sanitizers: their malloc does not survive a fork during another thread's call.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Forks while threads use a pool and make others.
void fork_during_calls(const PoolOptions& options) {
    MemoryPool pool(options);
    std::atomic<bool> over = false;
    std::thread allocates([&] {
        while (!over) use(pool);
    });
    std::thread makes_pools([&] {
        while (!over) {
            use(*std::make_unique<MemoryPool>(options));
            pool.trim();
        }
    });
    for (unsigned i = 0; i < 30; ++i) {
        EXPECT_TRUE(testing::holds_in_child([&] {
            use(pool);
            pool.trim();
            use(*std::make_unique<MemoryPool>(options));
            return true;
        }));
    }
    over = true;
    allocates.join();
    makes_pools.join();
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST_P(PoolFork, ForkDuringAllocationsLeavesNoLockInTheChild) {
    fork_during_calls(options());
}

// Threads make shards of each new pool while the process forks.
TEST_P(PoolFork, ForkDuringAllocationsOfTwoShardsLeavesNoLockInTheChild) {
    const testing::ForcedShards forced(2);
    fork_during_calls(options());
}
#endif

}  // namespace
}  // namespace tensorpool
