#include <tensorpool/stashed_map.hpp>

#include <gtest/gtest.h>

#include <thread>

#include "rest/map/map_content.hpp"

// How maps make room in budgets.

namespace tensorpool::stashing {
namespace {

TEST(StashedMapBudget, ItsPoolMustChargeTheBudget) {
    Budget process("process");
    Budget cache(process, "cache", {.hard = 16 * MiB});
    MemoryPool without({.name = "without"});
    MemoryPool other({.name = "other", .budget = &process});
    MemoryPool charged({.name = "charged", .budget = &cache});
    const auto error_with = [&](MemoryPool& pool) -> std::string {
        try {
            const Map map({.name = "kv", .budget = &cache, .pool = &pool});
            return "";
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
    };
    EXPECT_EQ(error_with(without),
              "tensorpool: stashed map 'kv': the pool 'without' has no budget; expected one that "
              "charges 'cache' or a budget below it, or no pool");
    EXPECT_NE(error_with(other).find("the pool 'other' has another budget"), std::string::npos);
    EXPECT_EQ(error_with(charged), "");
    EXPECT_NO_THROW(Map({.name = "kv", .budget = &process, .pool = &charged}));
}

TEST(StashedMapBudget, TensorsAndCompressedBytesAreCharged) {
    Budget budget("cache");
    {
        Map map({.name = "kv", .budget = &budget, .memory_bytes = MiB});
        put(map, 1, numbered(1));
        put(map, 2, numbered(2));
        EXPECT_EQ(budget.in_use(), map.pool().statistics().capacity_bytes);
        EXPECT_GE(budget.in_use(), MiB);
    }
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(StashedMapBudget, DataBeyondTheBudgetIsPutToRest) {
    Budget budget("cache", {.soft = 12 * MiB, .hard = 16 * MiB});
    Map map({.name = "kv", .budget = &budget});
    for (int key = 0; key < 32; ++key) put(map, key, numbered(key));
    for (int round = 0; round < 3; ++round)
        for (int key = 0; key < 32; ++key) ASSERT_TRUE(holds(map.get(key), numbered(key)));
    EXPECT_LE(budget.statistics().peak_bytes, 16 * MiB);
    EXPECT_EQ(budget.statistics().refusals, 0U);
    EXPECT_GT(map.statistics().restores, 0U);
    EXPECT_EQ(map.statistics().failures, 0U) << map.last_failure();
}

TEST(StashedMapBudget, GivesToOthersOfTheBudgetAndReturnsTheMemory) {
    Budget root("process", {.hard = 40 * MiB});
    Budget cache(root, "cache");
    Budget work(root, "work");
    Map map({.name = "kv", .budget = &cache});
    for (int key = 0; key < 24; ++key) put(map, key, numbered(key));
    MemoryPool pool(PoolOptions{.name = "work", .budget = &work});
    const PooledAllocation block(pool, 32 * MiB);
    EXPECT_LE(root.in_use(), 40 * MiB);
    EXPECT_LE(map.statistics().memory_bytes, 8 * MiB);
    for (int key = 0; key < 24; ++key) ASSERT_TRUE(holds(map.get(key), numbered(key)));
}

TEST(StashedMapBudget, ReclaimReturnsTheMemory) {
    Budget budget("cache");
    Map map({.name = "kv", .budget = &budget});
    for (int key = 0; key < 16; ++key) put(map, key, numbered(key));
    const std::size_t before = budget.in_use();
    const std::size_t given = budget.reclaim(8 * MiB);
    EXPECT_GE(given, 8 * MiB);
    EXPECT_LE(given, 9 * MiB);
    EXPECT_LE(budget.in_use(), before - 4 * MiB);  // the pool grows by 4 MiB
    for (int key = 0; key < 16; ++key) ASSERT_TRUE(holds(map.get(key), numbered(key)));
}

TEST(StashedMapBudget, LimitBelowWhatIsInUse) {
    Budget budget("cache");
    Map map({.name = "kv", .budget = &budget});
    for (int key = 0; key < 16; ++key) put(map, key, numbered(key));
    budget.set_limits({.soft = 4 * MiB, .hard = 8 * MiB});
    EXPECT_LE(budget.in_use(), 8 * MiB);
    for (int key = 0; key < 16; ++key) ASSERT_TRUE(holds(map.get(key), numbered(key)));
    EXPECT_LE(budget.in_use(), 8 * MiB);
}

TEST(StashedMapBudget, PinnedTensorsAreNotGiven) {
    Budget budget("cache");
    Map map({.name = "kv", .budget = &budget});
    put(map, 1, numbered(1));
    put(map, 2, numbered(2));
    const StashedTensor first = map.get(1);
    StashedTensor second = map.get(2);
    EXPECT_EQ(budget.reclaim(16 * MiB), 0U);
    second = StashedTensor();
    EXPECT_GT(budget.reclaim(16 * MiB), 0U);
    EXPECT_TRUE(holds(first, numbered(1)));
    EXPECT_EQ(map.statistics().memory_bytes, MiB);
}

TEST(StashedMapBudget, KeptBytesAreGivenWhenAllTensorsArePinned) {
    Budget budget("cache");
    Map map({.budget = &budget});
    put(map, 1, numbered(1));
    budget.reclaim(1);
    const StashedTensorView view = map.read(1);
    EXPECT_GT(map.statistics().compressed_bytes, 0U);
    EXPECT_EQ(map.statistics().stashed_bytes, 0U);
    EXPECT_GT(budget.reclaim(1), 0U);
    EXPECT_EQ(map.statistics().compressed_bytes, 0U);
    EXPECT_EQ(map.statistics().memory_bytes, MiB);
    EXPECT_EQ(budget.reclaim(1), 0U);
    EXPECT_TRUE(holds(view, numbered(1)));
}

TEST(StashedMapBudget, TensorsThatAreOnlyReadAreEncodedOnce) {
    Budget budget("cache", {.hard = 16 * MiB});
    Map map({.budget = &budget});
    for (int key = 0; key < 24; ++key) put(map, key, numbered(key));
    for (int round = 0; round < 2; ++round)
        for (int key = 0; key < 24; ++key) ASSERT_TRUE(holds(map.read(key), numbered(key)));
    for (int key = 0; key < 24; ++key) overwrite(map.read(key));
    int changed = 0;
    for (int key = 0; key < 24; ++key)
        if (!holds(map.read(key), numbered(key))) ++changed;
    EXPECT_EQ(changed, 0);
    EXPECT_LE(budget.statistics().peak_bytes, 16 * MiB);
    EXPECT_EQ(map.statistics().failures, 0U) << map.last_failure();
}

TEST(StashedMapBudget, RefusalNamesTheBudgetAndKeepsAllTensors) {
    Budget budget("cache", {.hard = 8 * MiB});
    Map map({.name = "kv", .budget = &budget});
    put(map, 1, numbered(1));
    put(map, 2, numbered(2));
    {
        const StashedTensor first = map.get(1);
        const StashedTensor second = map.get(2);
        const std::string message =
            message_of([&] { map.put(3, PooledAllocation(map.pool(), 7 * MiB)); });
        EXPECT_NE(message.find("refused by 'cache'"), std::string::npos) << message;
    }
    EXPECT_TRUE(holds(map.get(1), numbered(1)));
    EXPECT_TRUE(holds(map.get(2), numbered(2)));
    EXPECT_EQ(map.size(), 2U);
}

TEST(StashedMapBudget, BudgetMayEndBeforeTheMap) {
    auto budget = std::make_unique<Budget>("cache", BudgetLimits{.hard = 64 * MiB});
    Map map({.name = "kv", .budget = budget.get(), .memory_bytes = 2 * MiB});
    for (int key = 0; key < 4; ++key) put(map, key, numbered(key));
    budget.reset();
    for (int key = 4; key < 100; ++key) put(map, key, numbered(key));
    for (int key = 0; key < 100; ++key) ASSERT_TRUE(holds(map.get(key), numbered(key)));
}

TEST(StashedMapBudget, TwoMapsOfOneBudgetDisplaceEachOther) {
    Budget budget("process", {.hard = 24 * MiB});
    Map first({.name = "first", .budget = &budget});
    Map second({.name = "second", .budget = &budget});
    const auto use = [](Map& map, unsigned seed) {
        Generator generator(seed);
        for (int key = 0; key < 24; ++key) put(map, key, numbered(key));
        for (int step = 0; step < 200; ++step) {
            const int key = static_cast<int>(generator() % 24);
            ASSERT_TRUE(holds(map.get(key), numbered(key))) << key;
        }
    };
    std::thread one([&] { use(first, 1); });
    std::thread other([&] { use(second, 2); });
    one.join();
    other.join();
    EXPECT_LE(budget.statistics().peak_bytes, 24 * MiB);
    EXPECT_EQ(first.statistics().failures + second.statistics().failures, 0U);
}

TEST(StashedMapBudget, HardLimitAloneSuffices) {
    Budget budget("cache", {.hard = 12 * MiB});
    Map map({.name = "kv", .budget = &budget});
    std::vector<std::thread> threads;
    for (int first = 0; first < 48; first += 16) {
        threads.emplace_back([&, first] {
            for (int key = first; key < first + 16; ++key) put(map, key, numbered(key));
            for (int round = 0; round < 5; ++round)
                for (int key = first; key < first + 16; ++key)
                    ASSERT_TRUE(holds(map.get(key), numbered(key))) << key;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(budget.statistics().peak_bytes, 12 * MiB);
    EXPECT_EQ(map.statistics().failures, 0U) << map.last_failure();
}

TEST(StashedMapBudget, ThreadsAgreeWithAMapOfBytesUnderPressure) {
    Budget budget("cache", {.soft = 2 * MiB, .hard = 12 * MiB});
    run_against_model({.budget = &budget});
    EXPECT_LE(budget.statistics().peak_bytes, 12 * MiB);
}

}  // namespace
}  // namespace tensorpool::stashing
