// Pools that charge their capacity to a budget.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/timeline.hpp>

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

PoolOptions options_with(Budget& budget) {
    PoolOptions options;
    options.name = "charged";
    options.budget = &budget;
    return options;
}

TEST(PoolBudget, ChargeIsTheCapacity) {
    Budget process("process");
    Budget budget(process, "pools");
    {
        MemoryPool pool(options_with(budget));
        void* const small = pool.allocate(1000);
        void* const large = pool.allocate(5 * mib);
        EXPECT_EQ(budget.in_use(), pool.get_total_capacity());
        EXPECT_EQ(process.in_use(), pool.get_total_capacity());
        pool.deallocate(small, 1000);
        pool.deallocate(large, 5 * mib);
        pool.trim();
        EXPECT_EQ(budget.in_use(), pool.get_total_capacity());
    }
    EXPECT_EQ(process.in_use(), 0U);
}

TEST(PoolBudget, RefusesWhatTheLimitDoesNotAllow) {
    Budget budget("pools", {.hard = 8 * mib});
    MemoryPool pool(options_with(budget));
    void* const block = pool.allocate(6 * mib);
    EXPECT_EQ(pool.try_allocate(4 * mib), nullptr);
    EXPECT_LE(budget.statistics().peak_bytes, 8 * mib);
    try {
        (void)pool.allocate(4 * mib);
        FAIL();
    } catch (const AllocationError& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("pool") + text.find("'pools'"), std::string::npos) << text;
        EXPECT_NE(text.find("limit met: the budget's hard limit (8 MiB)"), std::string::npos)
            << text;
        EXPECT_NE(text.find("refused by 'pools'"), std::string::npos) << text;
    }
    pool.deallocate(block, 6 * mib);
    void* const other = pool.allocate(7 * mib);
    EXPECT_NE(other, nullptr) << "free memory makes way";
    pool.deallocate(other, 7 * mib);
}

TEST(PoolBudget, FreeMemoryOfOtherSizesMakesWayBeforeARefusal) {
    Budget budget("pools", {.hard = 4 * mib});
    MemoryPool pool(options_with(budget));
    std::vector<void*> blocks;
    for (int count = 0; count != 3000; ++count) blocks.push_back(pool.allocate(1024));
    for (void* block : blocks) pool.deallocate(block, 1024);
    void* const large = pool.try_allocate(3 * mib + mib / 2);
    EXPECT_NE(large, nullptr);
    pool.deallocate(large, 3 * mib + mib / 2);
}

TEST(PoolBudget, ReserveBeyondTheLimitChangesNothing) {
    Budget budget("pools", {.hard = 4 * mib});
    MemoryPool pool(options_with(budget));
    EXPECT_THROW(pool.reserve(5 * mib), AllocationError);
    EXPECT_EQ(budget.in_use(), 0U);
    pool.reserve(4 * mib);
    EXPECT_EQ(budget.in_use(), 4 * mib);
    PoolOptions options = options_with(budget);
    options.initial_capacity = 2 * mib;
    EXPECT_THROW(MemoryPool other(options), AllocationError);
    EXPECT_EQ(budget.in_use(), 4 * mib);
}

/// A cache of blocks of a pool, which it frees when the budget needs memory.
class Cache : public MemoryHolder {
public:
    Cache(MemoryPool& pool, Budget& budget, std::size_t blocks) : pool_(pool) {
        for (std::size_t count = 0; count != blocks; ++count) {
            blocks_.push_back(pool.allocate(mib));
        }
        registration_ = budget.add_holder(*this, {.name = "cache"});
    }
    ~Cache() override {
        registration_ = {};
        give(SIZE_MAX);
    }
    std::size_t available() const noexcept override { return blocks_.size() * mib; }
    std::size_t give(std::size_t bytes) noexcept override {
        std::size_t given = 0;
        while (given < bytes && !blocks_.empty()) {
            pool_.deallocate(blocks_.back(), mib);
            blocks_.pop_back();
            given += mib;
        }
        return given;
    }
    std::size_t size() const noexcept { return blocks_.size(); }

private:
    MemoryPool& pool_;
    std::vector<void*> blocks_;
    HolderRegistration registration_;
};

TEST(PoolBudget, HolderFreesBlocksOfTheSamePoolBeforeARefusal) {
    Budget budget("pools", {.hard = 10 * mib});
    MemoryPool pool(options_with(budget));
    Cache cache(pool, budget, 8);
    void* const block = pool.allocate(4 * mib);
    EXPECT_LT(cache.size(), 8U);
    EXPECT_GE(cache.size(), 5U) << "it gives what is missing";
    pool.deallocate(block, 4 * mib);
}

TEST(PoolBudget, HolderInOnePoolMakesRoomForAnother) {
    Budget process("process", {.hard = 10 * mib});
    Budget part(process, "cache");
    Budget work(process, "work");
    PoolOptions cached = options_with(part);
    cached.retain.bytes = 0;
    MemoryPool of_cache(cached);
    MemoryPool of_work(options_with(work));
    Cache cache(of_cache, part, 8);
    void* const block = of_work.allocate(6 * mib);
    EXPECT_LE(process.statistics().peak_bytes, 10 * mib);
    of_work.deallocate(block, 6 * mib);
}

void keep_free(MemoryPool& pool, std::size_t bytes) {
    pool.deallocate(pool.allocate(bytes), bytes);
}

TEST(PoolBudget, PoolsGiveNoMoreThanTheRequestOfAnotherMisses) {
    Budget budget("pools", {.hard = 10 * mib});
    MemoryPool first(options_with(budget));
    MemoryPool second(options_with(budget));
    MemoryPool work(options_with(budget));
    keep_free(first, 4 * mib);
    keep_free(second, 4 * mib);
    void* const block = work.allocate(5 * mib);
    EXPECT_GE(first.get_total_capacity() + second.get_total_capacity(), 4 * mib);
    work.deallocate(block, 5 * mib);
}

TEST(PoolBudget, WhatAPoolGivesForAnotherIsInTheTimeline) {
    Budget budget("pools", {.hard = 10 * mib});
    PoolOptions options = options_with(budget);
    options.name = "gives";
    MemoryPool gives(options);
    MemoryPool work(options_with(budget));
    keep_free(gives, 8 * mib);
    const std::size_t free = gives.get_total_capacity();
    const std::uint64_t before = timeline_since().last;
    void* const block = work.allocate(6 * mib);
    std::size_t given = 0;
    for (const TimelineEntry& entry : timeline_since(before).entries) {
        if (entry.name == "gives" && entry.kind == EntryKind::give_back) given += entry.bytes;
    }
    EXPECT_EQ(given, free - gives.get_total_capacity());
    EXPECT_GT(given, 0U);
    work.deallocate(block, 6 * mib);
}

TEST(PoolBudget, SoftLimitMakesHoldersGiveFirst) {
    Budget budget("pools", {.soft = 10 * mib});
    PoolOptions options = options_with(budget);
    options.retain.bytes = 0;
    MemoryPool pool(options);
    Cache cache(pool, budget, 8);
    void* const block = pool.allocate(5 * mib);
    EXPECT_LT(cache.size(), 8U);
    EXPECT_LE(budget.in_use(), 10 * mib);
    void* const beyond = pool.allocate(20 * mib);
    EXPECT_EQ(cache.size(), 0U);
    EXPECT_GE(budget.in_use(), 25 * mib);
    pool.deallocate(block, 5 * mib);
    pool.deallocate(beyond, 20 * mib);
}

TEST(PoolBudget, BudgetMayEndBeforeItsPool) {
    Budget process("process");
    std::optional<Budget> budget(std::in_place, process, "pools", BudgetLimits{.hard = 4 * mib});
    std::optional<MemoryPool> pool(std::in_place, options_with(*budget));
    void* const block = pool->allocate(mib);
    budget.reset();
    EXPECT_EQ(process.in_use(), pool->get_total_capacity());
    void* const beyond = pool->allocate(16 * mib);
    EXPECT_NE(beyond, nullptr) << "the limit ended with the budget";
    pool->deallocate(block, mib);
    pool->deallocate(beyond, 16 * mib);
    pool.reset();
    EXPECT_EQ(process.in_use(), 0U);
}

TEST(PoolBudget, ManyThreadsNeverExceedTheLimit) {
    Budget budget("pools", {.hard = 32 * mib});
    MemoryPool pool(options_with(budget));
    std::vector<std::thread> threads;
    for (unsigned number = 0; number != 8; ++number) {
        threads.emplace_back([&pool, number] {
            unsigned random = number + 1;
            std::vector<std::pair<void*, std::size_t>> blocks;
            for (int step = 0; step != 3000; ++step) {
                random = random * 1664525 + 1013904223;
                const std::size_t bytes = 1 + random % (3 * mib);
                if (void* const block = pool.try_allocate(bytes)) blocks.emplace_back(block, bytes);
                if (blocks.size() > 5 || random % 3 == 0) {
                    for (const auto& [block, size] : blocks) pool.deallocate(block, size);
                    blocks.clear();
                }
            }
            for (const auto& [block, size] : blocks) pool.deallocate(block, size);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(budget.statistics().peak_bytes, 32 * mib);
    EXPECT_EQ(budget.in_use(), pool.get_total_capacity());
}

}  // namespace
}  // namespace tensorpool
