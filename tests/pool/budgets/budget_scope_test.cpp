// Blocks that a BudgetScope charges to its budget.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>

#include "limits/charged.hpp"
#include "platform/platform.hpp"
#include "platform/tools/memory_tools.hpp"
#include "pool/pool.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;

class BudgetScopeTest : public ::testing::TestWithParam<Checks> {
protected:
    static PoolOptions options() {
        PoolOptions options;
        options.name = "shared";
        options.checks = GetParam();
        options.quarantine_bytes = 0;
        return options;
    }
    std::size_t charge_of(const void* block) const {
        // Blocks of a hardened pool are charged with their pages.
        return GetParam() == Checks::hardened ? 0 : pool_.usable_size(block);
    }

    MemoryPool pool_{options()};
    Budget process_{"process"};
    Budget budget_{process_, "request"};
};

std::string name_of(const ::testing::TestParamInfo<Checks>& tested) {
    static constexpr const char* names[] = {"Off", "Basic", "Full", "Sampled", "Hardened"};
    return names[static_cast<unsigned>(tested.param)];
}
INSTANTIATE_TEST_SUITE_P(Levels, BudgetScopeTest,
                         ::testing::Values(Checks::off, Checks::full, Checks::sampled,
                                           Checks::hardened),
                         name_of);

TEST_P(BudgetScopeTest, ChargesUsableBytesUntilTheFree) {
    for (const std::size_t bytes : {1UL, 64UL, 1000UL, 64 * kib, 100 * kib, 3 * mib}) {
        void* block = nullptr;
        {
            const BudgetScope scope(budget_);
            block = pool_.allocate(bytes);
            EXPECT_GE(budget_.in_use(), pool_.usable_size(block));
        }
        if (GetParam() != Checks::hardened) {
            EXPECT_EQ(budget_.in_use(), pool_.usable_size(block)) << bytes;
        }
        EXPECT_EQ(process_.in_use(), budget_.in_use());
        EXPECT_TRUE(pool_.owns(block));
        pool_.deallocate(block, bytes);
        EXPECT_EQ(process_.in_use(), 0U) << bytes;
    }
}

TEST_P(BudgetScopeTest, WhatWasAllocatedOutsideIsNotCharged) {
    void* const before = pool_.allocate(100);
    void* const large_before = pool_.allocate(mib);
    {
        const BudgetScope scope(budget_);
        pool_.deallocate(before, 100);
        pool_.deallocate(large_before, mib);
        EXPECT_EQ(budget_.in_use(), 0U);
    }
    void* const after = pool_.allocate(100);
    EXPECT_EQ(budget_.in_use(), 0U);
    pool_.deallocate(after, 100);
}

TEST_P(BudgetScopeTest, FreesOnOtherThreadsRefund) {
    std::vector<std::pair<void*, std::size_t>> blocks;
    {
        const BudgetScope scope(budget_);
        for (std::size_t bytes = 1; bytes < mib; bytes = bytes * 3 + 1) {
            blocks.emplace_back(pool_.allocate(bytes), bytes);
        }
    }
    EXPECT_GT(budget_.in_use(), mib / 2);
    void* const own = pool_.allocate(64);
    std::thread other([&] {
        // A cache of its own, so that the inline path could take the blocks.
        pool_.deallocate(pool_.allocate(64), 64);
        for (const auto& [block, bytes] : blocks) pool_.deallocate(block, bytes);
    });
    other.join();
    EXPECT_EQ(budget_.in_use(), 0U);
    pool_.deallocate(own, 64);
}

TEST_P(BudgetScopeTest, UnsizedAndAlignedFreesRefund) {
    void* small = nullptr;
    void* aligned = nullptr;
    void* large = nullptr;
    {
        const BudgetScope scope(budget_);
        small = pool_.allocate(300);
        aligned = pool_.allocate(300, 4096);
        large = pool_.allocate(200 * kib);
    }
    pool_.deallocate(small);
    pool_.deallocate(aligned, 300, 4096);
    pool_.deallocate(large);
    EXPECT_EQ(budget_.in_use(), 0U);
}

TEST_P(BudgetScopeTest, ReallocateChargesTheNewBlock) {
    void* block = nullptr;
    {
        const BudgetScope scope(budget_);
        block = pool_.allocate(100);
        std::memset(block, 7, 100);
        block = pool_.reallocate(block, 100, 5000);
        block = pool_.reallocate(block, 5000, 300 * kib);
        block = pool_.reallocate(block, 300 * kib, 900 * kib);
        EXPECT_EQ(static_cast<char*>(block)[99], 7);
    }
    if (GetParam() != Checks::hardened) {
        EXPECT_EQ(budget_.in_use(), pool_.usable_size(block));
    }
    pool_.deallocate(block, 900 * kib);
    EXPECT_EQ(budget_.in_use(), 0U);
}

TEST_P(BudgetScopeTest, ZeroedBlocksContainZeros) {
    const BudgetScope scope(budget_);
    for (int round = 0; round != 50; ++round) {
        char* const block = static_cast<char*>(pool_.allocate_zeroed(1, 500));
        EXPECT_TRUE(std::all_of(block, block + 500, [](char byte) { return byte == 0; }));
        std::memset(block, 1, 500);
        pool_.deallocate(block, 500);
    }
}

TEST_P(BudgetScopeTest, OfNestedScopesTheInnermostCharges) {
    Budget inner(budget_, "inner");
    Budget other("other");
    void* of_inner = nullptr;
    void* of_other = nullptr;
    void* of_outer = nullptr;
    {
        const BudgetScope scope(budget_);
        {
            const BudgetScope innermost(inner);
            of_inner = pool_.allocate(1000);
        }
        {
            const BudgetScope innermost(other);
            of_other = pool_.allocate(1000);
        }
        of_outer = pool_.allocate(1000);
    }
    if (GetParam() != Checks::hardened) {
        EXPECT_EQ(inner.in_use(), kib);
        EXPECT_EQ(other.in_use(), kib);
        EXPECT_EQ(budget_.in_use(), 2 * kib);
    }
    for (void* block : {of_inner, of_other, of_outer}) pool_.deallocate(block, 1000);
    EXPECT_EQ(budget_.in_use(), 0U);
    EXPECT_EQ(other.in_use(), 0U);
}

TEST_P(BudgetScopeTest, LimitRefusesSmallAndLargeBlocks) {
    Budget limited(process_, "limited", {.hard = mib});
    std::vector<void*> blocks;
    {
        const BudgetScope scope(limited);
        EXPECT_EQ(pool_.try_allocate(2 * mib), nullptr);
        while (void* const block = pool_.try_allocate(1000)) blocks.push_back(block);
        EXPECT_LE(limited.statistics().peak_bytes, mib);
        if (GetParam() != Checks::hardened) {
            EXPECT_EQ(blocks.size(), mib / kib);
        }
        try {
            (void)pool_.allocate(1000);
            FAIL();
        } catch (const AllocationError& error) {
            EXPECT_NE(std::string(error.what()).find("refused by 'limited'"), std::string::npos)
                << error.what();
        }
    }
    void* const outside = pool_.allocate(1000);
    pool_.deallocate(outside, 1000);
    for (void* block : blocks) pool_.deallocate(block, 1000);
    EXPECT_EQ(limited.in_use(), 0U);
}

TEST_P(BudgetScopeTest, BlocksThatOutliveTheirBudgetAreChargedToItsParent) {
    std::optional<Budget> request(std::in_place, process_, "short");
    void* small = nullptr;
    void* large = nullptr;
    {
        const BudgetScope scope(*request);
        small = pool_.allocate(2000);
        large = pool_.allocate(mib);
    }
    const std::size_t charged = request->in_use();
    request.reset();
    EXPECT_EQ(process_.in_use(), charged);
    EXPECT_GT(charged, mib);
    pool_.deallocate(small, 2000);
    pool_.deallocate(large, mib);
    EXPECT_EQ(process_.in_use(), 0U);
}

TEST_P(BudgetScopeTest, PoolsWithABudgetOfTheirOwnChargeThat) {
    Budget own("own");
    PoolOptions options = BudgetScopeTest::options();
    options.budget = &own;
    MemoryPool pool(options);
    const BudgetScope scope(budget_);
    void* const block = pool.allocate(1000);
    EXPECT_EQ(budget_.in_use(), 0U);
    EXPECT_EQ(own.in_use(), pool.get_total_capacity());
    pool.deallocate(block, 1000);
}

TEST_P(BudgetScopeTest, StatisticsCountChargedBlocksLikeOthers) {
    {
        const BudgetScope scope(budget_);
        void* const small = pool_.allocate(1000);
        void* const large = pool_.allocate(mib);
        EXPECT_EQ(pool_.get_allocation_count(), 2U);
        EXPECT_GE(pool_.get_total_allocated(), mib + 1000);
        pool_.deallocate(small, 1000);
        pool_.deallocate(large, mib);
    }
    EXPECT_EQ(pool_.get_deallocation_count(), 2U);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    pool_.trim();
    EXPECT_EQ(pool_.statistics().parked_bytes, 0U);
}

TEST_P(BudgetScopeTest, ThreadMayEndWithBlocksInUse) {
    void* block = nullptr;
    std::thread thread([&] {
        const BudgetScope scope(budget_);
        pool_.deallocate(pool_.allocate(64), 64);
        block = pool_.allocate(100);
    });
    thread.join();
    EXPECT_GT(budget_.in_use(), 0U);
    pool_.deallocate(block, 100);
    EXPECT_EQ(budget_.in_use(), 0U);
}

TEST_P(BudgetScopeTest, ThousandsOfBudgetsOneAfterAnotherHoldNothing) {
    const auto request = [&] {
        Budget budget(process_, "request", {.hard = mib});
        const BudgetScope scope(budget);
        void* const small = pool_.allocate(100);
        void* const large = pool_.allocate(100 * kib);
        pool_.deallocate(large, 100 * kib);
        pool_.deallocate(small, 100);
    };
    for (int warm = 0; warm != 100; ++warm) request();
    const std::size_t records = pool_.statistics().record_bytes;
    const std::size_t capacity = pool_.get_total_capacity();
    for (int count = 0; count != 2'000; ++count) request();
    EXPECT_EQ(pool_.statistics().record_bytes, records);
    EXPECT_EQ(pool_.get_total_capacity(), capacity);
    EXPECT_EQ(process_.in_use(), 0U);
}

TEST_P(BudgetScopeTest, ManyThreadsNeverExceedTheLimit) {
    constexpr std::size_t limit = 4 * mib;
    Budget limited(process_, "limited", {.hard = limit});
    std::vector<std::thread> threads;
    for (unsigned number = 0; number != 6; ++number) {
        threads.emplace_back([&, number] {
            std::mt19937 random(number);
            Budget own(limited, "own");
            std::vector<std::pair<void*, std::size_t>> blocks;
            for (int step = 0; step != 1'500; ++step) {
                std::optional<BudgetScope> scope;
                if (random() % 2 == 0) scope.emplace(random() % 2 == 0 ? own : limited);
                const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 400'000 : 9'000);
                if (void* const block = pool_.try_allocate(bytes)) {
                    std::memset(block, static_cast<int>(number), bytes);
                    blocks.emplace_back(block, bytes);
                }
                if (blocks.size() > 40 || random() % 50 == 0) {
                    for (const auto& [block, size] : blocks) {
                        ASSERT_EQ(*static_cast<unsigned char*>(block), number);
                        pool_.deallocate(block, size);
                    }
                    blocks.clear();
                }
            }
            for (const auto& [block, size] : blocks) pool_.deallocate(block, size);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(limited.in_use(), 0U);
    EXPECT_LE(limited.statistics().peak_bytes, limit);
    EXPECT_EQ(process_.in_use(), 0U);
}

TEST(BudgetScope, ParkedBlocksOfOtherThreadsMakeWayBeforeARefusal) {
    MemoryPool pool;
    Budget budget("request", {.hard = mib});
    const BudgetScope scope(budget);
    std::atomic<bool> is_parked = false;
    std::atomic<bool> is_done = false;
    std::thread other([&] {
        const BudgetScope its_scope(budget);
        std::vector<void*> blocks;
        for (int count = 0; count != 100; ++count) blocks.push_back(pool.allocate(4096));
        for (void* block : blocks) pool.deallocate(block, 4096);
        is_parked = true;
        testing::wait_until("the block is allocated", is_done);
    });
    testing::wait_until("the other thread has parked its blocks", is_parked);
    void* const block = pool.try_allocate(mib);
    EXPECT_NE(block, nullptr);
    pool.deallocate(block, mib);
    is_done = true;
    other.join();
    EXPECT_LE(budget.statistics().peak_bytes, mib);
}

TEST(BudgetScope, PoolsWithoutChargesOfTheBudgetKeepTheirParkedBlocks) {
    MemoryPool pool;
    Budget budget("full", {.hard = mib});
    Budget other("other");
    void* charged = nullptr;
    {
        const BudgetScope scope(other);
        charged = pool.allocate(100);
    }
    pool.deallocate(pool.allocate(1000), 1000);
    const std::size_t parked = pool.statistics().parked_bytes;
    EXPECT_GT(parked, 0U);
    const testing::Charged reserved(budget, mib);
    EXPECT_THROW(testing::Charged(budget, 1), AllocationError);
    EXPECT_EQ(pool.statistics().parked_bytes, parked);
    pool.deallocate(charged, 100);
}

TEST(BudgetScope, PoolDestroyedWithChargedBlocksRefundsThem) {
    Budget budget("request");
    {
        PoolOptions options;
        options.checks = Checks::off;
        MemoryPool pool(options);
        {
            const BudgetScope scope(budget);
            (void)pool.allocate(1000);
            (void)pool.allocate(mib);
        }
        EXPECT_EQ(budget.in_use(), mib + kib);
    }
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(BudgetScope, PoolMayEndInsideTheScope) {
    Budget budget("request");
    MemoryPool other;
    {
        const BudgetScope scope(budget);
        std::optional<MemoryPool> pool(std::in_place);
        pool->deallocate(pool->allocate(100), 100);
        pool.reset();
        EXPECT_EQ(budget.in_use(), 0U) << "what the thread parked ended with the pool";
        void* const block = other.allocate(100);
        EXPECT_GT(budget.in_use(), 0U);
        other.deallocate(block, 100);
    }
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(BudgetScope, PoolMayEndWhileOtherThreadsAreInsideTheScope) {
    Budget budget("request");
    MemoryPool other;
    std::optional<MemoryPool> pool(std::in_place);
    std::atomic<bool> has_used = false;
    std::atomic<bool> is_destroyed = false;
    std::thread thread([&] {
        const BudgetScope scope(budget);
        pool->deallocate(pool->allocate(100), 100);
        has_used = true;
        testing::wait_until("the pool is destroyed", is_destroyed);
        other.deallocate(other.allocate(100), 100);
    });
    testing::wait_until("the other thread has used the pool", has_used);
    pool.reset();
    is_destroyed = true;
    thread.join();
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(BudgetScope, InlinePathsServeTheThreadAgainAfterATrim) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "inline paths find no cache";
    MemoryPool pool({.checks = Checks::off});
    Budget budget("request");
    {
        const BudgetScope scope(budget);
        pool.deallocate(pool.allocate(100), 100);
    }
    pool.trim();
    pool.deallocate(pool.allocate(100), 100);
    const detail::TablePlace place(detail::PoolAccess::of(pool).parts().number());
    void* const block = detail::thread_cache(place).pop(detail::bucket_of(100), 100);
    EXPECT_NE(block, nullptr) << "the thread sees the cache of a budget that has no scope";
    if (block != nullptr) pool.deallocate(block, 100);
}

TEST(BudgetScope, ChargesTheGlobalPool) {
    Budget budget("request");
    MemoryPool& pool = get_global_memory_pool();
    void* block = nullptr;
    {
        const BudgetScope scope(budget);
        block = pool.allocate(1000);
        for (int round = 0; round != 1000; ++round) pool.deallocate(pool.allocate(64), 64);
    }
    EXPECT_EQ(budget.in_use(), pool.usable_size(block));
    pool.deallocate(block, 1000);
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(BudgetScope, HoldersGiveBeforeABlockIsRefused) {
    class Cache : public MemoryHolder {
    public:
        Cache(MemoryPool& pool, Budget& budget) : pool_(pool) {
            const BudgetScope scope(budget);
            for (int count = 0; count != 6; ++count) blocks_.push_back(pool.allocate(100 * kib));
            registration_ = budget.add_holder(*this);
        }
        ~Cache() override {
            registration_ = {};
            give(SIZE_MAX);
        }
        std::size_t available() const noexcept override { return blocks_.size() * 100 * kib; }
        std::size_t give(std::size_t bytes) noexcept override {
            std::size_t given = 0;
            for (; given < bytes && !blocks_.empty(); given += 100 * kib) {
                pool_.deallocate(blocks_.back(), 100 * kib);
                blocks_.pop_back();
            }
            return given;
        }
        std::size_t size() const { return blocks_.size(); }

    private:
        MemoryPool& pool_;
        std::vector<void*> blocks_;
        HolderRegistration registration_;
    };
    MemoryPool pool;
    Budget budget("request", {.hard = 700 * kib});
    Cache cache(pool, budget);
    const BudgetScope scope(budget);
    std::vector<void*> blocks;
    for (int count = 0; count != 300; ++count) blocks.push_back(pool.allocate(1000));
    EXPECT_EQ(cache.size(), 3U);
    for (void* block : blocks) pool.deallocate(block, 1000);
}

// Sanitizers keep memory of their own for each.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t many = 2'000;
#else
constexpr std::size_t many = 20'000;
#endif

TEST(ManyBudgets, MayEachHaveABlockInUse) {
    MemoryPool pool(PoolOptions{.name = "many"});
    Budget process("process");
    std::vector<std::unique_ptr<Budget>> budgets;
    std::vector<void*> blocks;
    const auto take = [&](std::size_t count) {
        for (; budgets.size() != count;) {
            budgets.push_back(std::make_unique<Budget>(process, "request"));
            const BudgetScope scope(*budgets.back());
            blocks.push_back(pool.allocate(100));
        }
    };
    take(many / 10);
    const std::size_t before = platform::resident_memory();
    take(many);
    const std::size_t block = pool.usable_size(blocks.front());
    EXPECT_EQ(process.in_use(), many * block);
    // Where larger pages are simulated, the system still counts in its own.
    if (many == 20'000 && platform::page_bytes() == 4096) {
        EXPECT_LT((platform::resident_memory() - before) / (many - many / 10), block + 1024);
    }
    for (std::size_t i = 0; i != many; ++i) {
        EXPECT_EQ(budgets[i]->in_use(), block);
        pool.deallocate(blocks[i], 100);
    }
    EXPECT_EQ(process.in_use(), 0U);
}

TEST(ManyBudgets, MayFormADeepTree) {
    class Nothing : public MemoryHolder {
    public:
        std::size_t available() const noexcept override { return 0; }
        std::size_t give(std::size_t) noexcept override { return 0; }
    };
    MemoryPool pool(PoolOptions{.name = "deep"});
    Nothing holder;
    std::vector<std::unique_ptr<Budget>> budgets;
    budgets.push_back(std::make_unique<Budget>("top", BudgetLimits{.hard = mib}));
    while (budgets.size() != 20 * many)
        budgets.push_back(std::make_unique<Budget>(*budgets.back(), "below"));
    {
        const HolderRegistration registration = budgets.back()->add_holder(holder);
        const BudgetScope scope(*budgets.back());
        void* const block = pool.allocate(100 * kib);
        EXPECT_EQ(budgets.front()->in_use(), pool.usable_size(block));
        EXPECT_FALSE(budgets.back()->would_fit(mib));
        EXPECT_THROW((void)pool.allocate(2 * mib), AllocationError);
        pool.deallocate(block, 100 * kib);
    }
    EXPECT_EQ(budgets.front()->in_use(), 0U);
    while (!budgets.empty()) budgets.pop_back();
}

}  // namespace
}  // namespace tensorpool
