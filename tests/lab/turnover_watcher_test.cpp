// A watcher that a folder beside the library adds: what pools do with it by themselves.

#include "lab/turnover_watcher.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/heap_profile.hpp>
#include <tensorpool/memory_pool.hpp>

#include "platform/tools/memory_tools.hpp"

namespace tensorpool::lab {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t sizes[] = {100, 3000, 64 * kib, 100 * kib, 3 * mib};

class WatchedPool : public ::testing::Test {
protected:
    void SetUp() override {
        if (platform::has_memory_tool()) GTEST_SKIP() << "a tool sees every call by itself";
        TurnoverWatcher::distance = kinds::Watcher::every_request;
        allocated_before_ = turnover.allocated;
        freed_before_ = turnover.freed;
    }
    std::size_t allocated() const { return turnover.allocated - allocated_before_; }
    std::size_t freed() const { return turnover.freed - freed_before_; }

    MemoryPool pool_{PoolOptions{.name = TurnoverWatcher::pool_name, .checks = Checks::off}};

private:
    std::size_t allocated_before_ = 0;
    std::size_t freed_before_ = 0;
};

TEST_F(WatchedPool, EachBlockIsMarkedAndItsFreeSeen) {
    std::vector<void*> blocks;
    for (int round = 0; round != 20; ++round) {
        for (const std::size_t bytes : sizes) blocks.push_back(pool_.allocate(bytes));
    }
    EXPECT_EQ(allocated(), blocks.size());
    EXPECT_EQ(freed(), 0U);
    for (std::size_t i = 0; i != blocks.size(); ++i) {
        const std::size_t bytes = sizes[i % std::size(sizes)];
        i % 2 == 0 ? pool_.deallocate(blocks[i]) : pool_.deallocate(blocks[i], bytes);
    }
    EXPECT_EQ(freed(), blocks.size());
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(WatchedPool, FreeOnAnotherThreadIsSeen) {
    void* const block = pool_.allocate(100);
    std::thread([&] { pool_.deallocate(block, 100); }).join();
    EXPECT_EQ(freed(), 1U);
}

TEST_F(WatchedPool, EndOfThePoolEndsItsMarks) {
    {
        MemoryPool pool({.name = TurnoverWatcher::pool_name, .checks = Checks::off});
        for (const std::size_t bytes : sizes) (void)pool.allocate(bytes);
        EXPECT_EQ(allocated(), std::size(sizes));
    }
    EXPECT_EQ(freed(), std::size(sizes));
}

TEST_F(WatchedPool, OtherPoolsAreNotWatched) {
    MemoryPool pool({.name = "other", .checks = Checks::off});
    for (const std::size_t bytes : sizes) pool.deallocate(pool.allocate(bytes), bytes);
    EXPECT_EQ(allocated(), 0U);
}

TEST_F(WatchedPool, MarkCoversTheBudgetOfAScope) {
    Budget budget("budget");
    std::vector<void*> blocks;
    {
        const BudgetScope scope(budget);
        for (const std::size_t bytes : sizes) blocks.push_back(pool_.allocate(bytes));
    }
    EXPECT_GT(budget.in_use(), 3 * mib);
    for (void* const block : blocks) pool_.deallocate(block);
    EXPECT_EQ(budget.in_use(), 0U);
    EXPECT_EQ(freed(), allocated());
}

TEST_F(WatchedPool, LooksBesideTheHeapProfile) {
    const std::size_t before = profile_interval();
    set_profile_interval(1);
    std::vector<void*> blocks;
    for (const std::size_t bytes : sizes) blocks.push_back(pool_.allocate(bytes));
    set_profile_interval(before);
    EXPECT_EQ(allocated(), blocks.size());
    for (void* const block : blocks) pool_.deallocate(block);
    EXPECT_EQ(freed(), blocks.size());
}

TEST_F(WatchedPool, LooksAtSomeBlocksIfTheDistanceIsLong) {
    TurnoverWatcher::distance = 64.0 * kib;
    constexpr std::size_t count = 64 * kib;
    for (std::size_t i = 0; i != count; ++i) pool_.deallocate(pool_.allocate(kib), kib);
    EXPECT_GE(allocated(), 1U);
    EXPECT_LE(allocated(), count / 16);
    EXPECT_EQ(freed(), allocated());
}

}  // namespace
}  // namespace tensorpool::lab
