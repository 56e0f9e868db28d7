#include <tensorpool/stashed_map.hpp>

#include <gtest/gtest.h>

#include <tensorpool/arena.hpp>

#include "rest/map/map_content.hpp"

namespace tensorpool::stashing {
namespace {

TEST(StashedMap, KeepsTensorsByKey) {
    StashedMap<std::string> map;
    EXPECT_FALSE(map.get("a"));
    map.put("a", block_with(numbered(1), map.pool()));
    map.put("b", block_with(numbered(2), map.pool()));
    EXPECT_EQ(map.size(), 2U);
    EXPECT_TRUE(map.contains("a"));
    EXPECT_TRUE(holds(map.get("a"), numbered(1)));
    EXPECT_TRUE(holds(map.get("b"), numbered(2)));
    map.put("a", block_with(numbered(3), map.pool()));
    EXPECT_TRUE(holds(map.get("a"), numbered(3)));
    EXPECT_EQ(map.size(), 2U);
    EXPECT_TRUE(map.erase("a"));
    EXPECT_FALSE(map.erase("a"));
    EXPECT_FALSE(map.contains("a"));
    EXPECT_FALSE(map.get("a"));
    EXPECT_EQ(map.size(), 1U);
    EXPECT_EQ(map.statistics().memory_bytes, tensor_bytes);
}

TEST(StashedMap, TableGrowsWithThousandsOfKeys) {
    Map map;
    for (int key = 0; key < 5000; ++key) put(map, key << 16, numbered(key, 64));
    EXPECT_EQ(map.size(), 5000U);
    for (int key = 0; key < 5000; ++key)
        ASSERT_TRUE(holds(map.get(key << 16), numbered(key, 64))) << key;
    for (int key = 0; key < 5000; ++key) ASSERT_TRUE(map.erase(key << 16));
    EXPECT_EQ(map.size(), 0U);
    EXPECT_EQ(map.statistics().memory_bytes, 0U);
}

TEST(StashedMap, LeastRecentlyUsedTensorsRest) {
    Map map({.memory_bytes = 2 * tensor_bytes});
    put(map, 1, numbered(1));
    put(map, 2, numbered(2));
    (void)map.get(1);
    put(map, 3, numbered(3));  // 2 is the oldest
    StashedMapStatistics now = map.statistics();
    EXPECT_EQ(now.entries, 3U);
    EXPECT_EQ(now.memory_bytes, 2 * tensor_bytes);
    EXPECT_EQ(now.stashed_bytes, tensor_bytes);
    EXPECT_GT(now.compressed_bytes, 0U);
    EXPECT_LT(now.compressed_bytes, tensor_bytes / 8);
    EXPECT_EQ(now.stashes, 1U);
    EXPECT_EQ(now.hits, 1U);

    EXPECT_TRUE(holds(map.get(1), numbered(1)));
    EXPECT_TRUE(holds(map.get(3), numbered(3)));
    EXPECT_EQ(map.statistics().misses, 0U);
    EXPECT_TRUE(holds(map.get(2), numbered(2)));
    now = map.statistics();
    EXPECT_EQ(now.misses, 1U);
    EXPECT_EQ(now.restores, 1U);
    EXPECT_EQ(now.stashes, 2U);
    EXPECT_EQ(now.memory_bytes, 2 * tensor_bytes);
    EXPECT_GT(now.stash_ns, 0U);
    EXPECT_GT(now.restore_ns, 0U);
    EXPECT_TRUE(holds(map.get(3), numbered(3)));
    EXPECT_EQ(map.statistics().misses, 1U);  // so 1 rests
}

TEST(StashedMap, PinnedTensorsStayWhereTheyAre) {
    Map map({.memory_bytes = tensor_bytes});
    put(map, 1, numbered(1));
    StashedTensor first = map.get(1);
    StashedTensor again = map.get(1);
    EXPECT_EQ(first.get(), again.get());
    put(map, 2, numbered(2));
    put(map, 3, numbered(3));
    EXPECT_TRUE(holds(first, numbered(1)));
    EXPECT_EQ(map.statistics().memory_bytes, tensor_bytes);
    first = StashedTensor();
    EXPECT_FALSE(first);
    put(map, 4, numbered(4));
    EXPECT_TRUE(holds(map.get(1), numbered(1)));
    EXPECT_EQ(map.statistics().misses, 0U);

    again.as<std::byte>()[0] = std::byte{77};
    again = StashedTensor();
    put(map, 5, numbered(5));
    EXPECT_EQ(map.get(1).as<std::byte>()[0], std::byte{77});
    EXPECT_EQ(map.statistics().misses, 1U);
}

// They shrink to two thirds, which was as large a block as before.
TEST(StashedMap, SmallTensorsGoToRest) {
    for (const std::size_t bytes : {4UL << 10, 16UL << 10, 64UL << 10}) {
        Map map({.memory_bytes = MiB, .type = {.code = DataCode::bfloat, .bits = 16}});
        const int count = static_cast<int>(4 * MiB / bytes);
        for (int key = 0; key < count; ++key) put(map, key, weights(bytes, key));
        const StashedMapStatistics now = map.statistics();
        EXPECT_EQ(now.failures, 0U) << map.last_failure();
        EXPECT_LE(now.memory_bytes, MiB);
        EXPECT_GE(now.stashed_bytes, 3 * MiB);
        EXPECT_LE(now.compressed_bytes, now.stashed_bytes * 7 / 10);
        for (int key = 0; key < count; key += 7)
            EXPECT_TRUE(holds(map.get(key), weights(bytes, key)));
    }
}

// Of 100,000 B, blocks of powers of two would take a little less than whole pages do.
TEST(StashedMap, TensorsThatDoNotShrinkStayAndAreReported) {
    for (const std::size_t bytes : {16UL << 10, 100'000UL}) {
        Map map({.name = "noise", .memory_bytes = MiB});
        const int count = static_cast<int>(MiB * 5 / 4 / bytes);
        for (int key = 0; key < count; ++key) put(map, key, random(bytes, key));
        const StashedMapStatistics now = map.statistics();
        EXPECT_EQ(now.memory_bytes, static_cast<std::size_t>(count) * bytes);
        EXPECT_EQ(now.compressed_bytes, 0U);
        EXPECT_GT(now.failures, 0U);
        const std::string begin = "tensorpool: stashed map 'noise': a tensor of " +
                                  std::to_string(bytes) + " B would take ";
        EXPECT_EQ(map.last_failure().find(begin), 0U) << map.last_failure();
    }
}

// Each encoding takes blocks of many sizes, none of which the full budget has ready.
TEST(StashedMap, WeightsGoToRestInAFullBudget) {
    for (const std::size_t bytes : {64UL << 10, 256UL << 10}) {
        Budget budget("weights", BudgetLimits{.hard = 8 * MiB});
        Map map({.budget = &budget, .type = {.code = DataCode::bfloat, .bits = 16}});
        const int count = static_cast<int>(10 * MiB / bytes);
        for (int key = 0; key < count; ++key) put(map, key, weights(bytes, key));
        const StashedMapStatistics now = map.statistics();
        EXPECT_EQ(now.failures, 0U) << map.last_failure();
        EXPECT_LE(budget.in_use(), 8 * MiB);
        EXPECT_GE(now.memory_bytes + now.compressed_bytes, 6 * MiB);
        for (int key = 0; key < count; ++key)
            EXPECT_TRUE(holds(map.get(key), weights(bytes, key))) << key;
    }
}

TEST(StashedMap, TensorsThatWereOnlyReadRestWithoutBeingEncoded) {
    Map map({.memory_bytes = tensor_bytes});
    put(map, 1, numbered(1));
    put(map, 2, numbered(2));
    const StashedMapStatistics before = map.statistics();
    {
        const StashedTensorView tensor = map.read(1);
        EXPECT_TRUE(holds(tensor, numbered(1)));
        EXPECT_EQ(tensor.as<const std::byte>().data(), tensor.get());
        EXPECT_EQ(map.read(1).get(), tensor.get());
        // 2 rests as well now.
        EXPECT_GT(map.statistics().compressed_bytes, before.compressed_bytes);
        EXPECT_EQ(map.statistics().stashed_bytes, tensor_bytes);
        overwrite(tensor);
    }
    EXPECT_TRUE(holds(map.get(2), numbered(2)));
    EXPECT_EQ(map.statistics().stashes, before.stashes + 2);
    EXPECT_EQ(map.statistics().compressed_bytes, before.compressed_bytes);
    EXPECT_TRUE(holds(map.read(1), numbered(1)));
    EXPECT_FALSE(map.read(3));
}

TEST(StashedMap, TensorsThatMayHaveBeenWrittenAreEncodedAgain) {
    Map map({.memory_bytes = tensor_bytes});
    put(map, 1, numbered(1));
    put(map, 2, numbered(2));
    StashedTensorView view = map.read(1);
    const std::size_t with_kept = map.statistics().compressed_bytes;
    {
        const StashedTensor tensor = map.get(1);
        EXPECT_EQ(tensor.get(), view.get());
        EXPECT_LT(map.statistics().compressed_bytes, with_kept);
        tensor.as<std::byte>()[0] = std::byte{77};
        view = map.read(1);
    }
    view = StashedTensorView();
    EXPECT_TRUE(holds(map.read(2), numbered(2)));
    EXPECT_EQ(map.read(1).as<const std::byte>()[0], std::byte{77});
}

TEST(StashedMap, ErasedTensorsThatAreReadExistUntilTheirPinsEnd) {
    Map map({.memory_bytes = tensor_bytes});
    put(map, 1, numbered(1));
    put(map, 2, numbered(2));
    StashedTensorView view = map.read(1);
    EXPECT_TRUE(map.erase(1));
    EXPECT_TRUE(map.erase(2));
    const StashedMapStatistics now = map.statistics();
    EXPECT_EQ(now.memory_bytes + now.compressed_bytes + now.stashed_bytes, 0U);
    EXPECT_TRUE(holds(view, numbered(1)));
    view = StashedTensorView();
    EXPECT_EQ(map.pool().statistics().in_use_bytes, 0U);
}

TEST(StashedMap, ErasedAndReplacedTensorsExistUntilTheirPinsEnd) {
    Map map;
    put(map, 1, numbered(1));
    put(map, 2, numbered(2));
    const std::size_t before = map.pool().statistics().in_use_bytes;
    StashedTensor first = map.get(1);
    StashedTensor second = map.get(2);
    put(map, 1, numbered(3));
    EXPECT_TRUE(map.erase(2));
    EXPECT_TRUE(holds(first, numbered(1)));
    EXPECT_TRUE(holds(second, numbered(2)));
    EXPECT_EQ(map.statistics().memory_bytes, tensor_bytes);
    first = StashedTensor();
    second = StashedTensor();
    EXPECT_EQ(map.pool().statistics().in_use_bytes, before - tensor_bytes);
    EXPECT_TRUE(holds(map.get(1), numbered(3)));
}

TEST(StashedMap, PinsMayOutliveTheMap) {
    StashedTensor pinned;
    {
        Map map({.memory_bytes = tensor_bytes});
        put(map, 1, numbered(1));
        put(map, 2, numbered(2));
        pinned = map.get(1);
    }
    EXPECT_TRUE(holds(pinned, numbered(1)));
    pinned.as<std::byte>()[5] = std::byte{1};
}

TEST(StashedMap, EmptyTensorsAreTensors) {
    Map map({.memory_bytes = 1});
    map.put(1, PooledAllocation());
    put(map, 2, numbered(2));
    const StashedTensor empty = map.get(1);
    EXPECT_TRUE(empty);
    EXPECT_EQ(empty.size(), 0U);
    EXPECT_EQ(empty.get(), nullptr);
}

TEST(StashedMap, KeepsTheAlignment) {
    Map map({.memory_bytes = 1});
    map.put(1, block_with(numbered(1), map.pool(), 16'384));
    EXPECT_EQ(map.statistics().stashes, 1U);
    const StashedTensor tensor = map.get(1);
    EXPECT_TRUE(holds(tensor, numbered(1)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.get()) % 16'384, 0U);
}

TEST(StashedMap, TensorsThatDoNotShrinkStayInMemory) {
    Map map({.memory_bytes = 1});
    put(map, 1, random(tensor_bytes, 1));
    StashedMapStatistics now = map.statistics();
    EXPECT_EQ(now.stashes, 0U);
    EXPECT_EQ(now.failures, 1U);
    EXPECT_NE(map.last_failure().find("a tensor of 1048576 B would take "), std::string::npos)
        << map.last_failure();
    EXPECT_EQ(now.memory_bytes, tensor_bytes);
    // A pin may have changed it.
    StashedTensor tensor = map.get(1);
    std::ranges::copy(numbered(7), tensor.as<std::byte>().begin());
    tensor = StashedTensor();
    put(map, 2, random(tensor_bytes, 2));
    EXPECT_EQ(map.statistics().stashes, 1U);
    EXPECT_TRUE(holds(map.get(1), numbered(7)));
}

TEST(StashedMap, AbsurdOptionsAreRefused) {
    EXPECT_EQ(message_of([] { Map({.name = "x", .memory_bytes = static_cast<std::size_t>(-1)}); }),
              "tensorpool: stashed map 'x': memory_bytes is 18446744073709551615 B; expected at "
              "most 1152921504606846976 B, or 0 for none");
    EXPECT_EQ(
        message_of([] {
            Map({.name = "x", .compressed_bytes = static_cast<std::size_t>(-5), .folder = "."});
        }),
        "tensorpool: stashed map 'x': compressed_bytes is 18446744073709551611 B; expected "
        "at most 1152921504606846976 B, or 0 for none");
    EXPECT_EQ(message_of([] { Map({.name = "x", .compressed_bytes = 5}); }),
              "tensorpool: stashed map 'x': compressed_bytes is given without a folder; expected "
              "one to spill to");
    EXPECT_THROW(Map({.name = "x", .folder = "/nowhere"}), StashError);
}

TEST(StashedMap, BlocksOfOtherSourcesAreRefusedByName) {
    Arena arena;
    Map map({.name = "x"});
    PooledAllocation block(arena, 1000);
    EXPECT_EQ(message_of([&] { map.put(1, std::move(block)); }),
              "tensorpool: stashed map 'x': found a block of a source of kind 'arena', expected "
              "one of a MemoryPool");
    EXPECT_TRUE(block);
    EXPECT_EQ(map.size(), 0U);
}

TEST(StashedMap, PoolsWithALimitMakeTheMapPutTensorsToRest) {
    MemoryPool other(PoolOptions{.name = "other"});
    MemoryPool pool(PoolOptions{.name = "small", .max_capacity = 8 << 20});
    Map map({.pool = &pool});
    for (int key = 0; key < 16; ++key) map.put(key, block_with(numbered(key), other));
    for (int round = 0; round < 2; ++round)
        for (int key = 0; key < 16; ++key) EXPECT_TRUE(holds(map.get(key), numbered(key)));
}

TEST(StashedMap, FailedRestoreKeepsTheTensorAtRest) {
    MemoryPool other(PoolOptions{.name = "other"});
    MemoryPool pool(PoolOptions{.name = "small", .max_capacity = 4 << 20});
    Map map({.pool = &pool, .memory_bytes = 1});
    map.put(1, block_with(numbered(1, 8 << 20), other));
    EXPECT_EQ(map.statistics().stashes, 1U);
    EXPECT_THROW((void)map.get(1), AllocationError);
    StashedMapStatistics now = map.statistics();
    EXPECT_EQ(now.failures, 1U);
    EXPECT_EQ(now.stashed_bytes, 8U << 20);
    EXPECT_TRUE(map.contains(1));
    EXPECT_TRUE(map.erase(1));
    EXPECT_EQ(map.statistics().compressed_bytes, 0U);
}

TEST(StashedMap, ThreadsAgreeWithAMapOfBytes) {
    run_against_model({.memory_bytes = 1 << 20, .type = DataType::of<float>()});
    run_against_model({.memory_bytes = 1});
}

}  // namespace
}  // namespace tensorpool::stashing
