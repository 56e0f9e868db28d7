#include <gtest/gtest.h>

#include <string>

#include <tensorpool/budget.hpp>
#include <tensorpool/snapshot.hpp>
#include <tensorpool/stash.hpp>
#include <tensorpool/stashed_map.hpp>

#include "rest/test_content.hpp"

namespace tensorpool::stashing {
namespace {

/// Returns what rests under a name; nothing if there is none.
StashStatistics named(const std::string& name) {
    for (const StashStatistics& one : take_snapshot().stashes)
        if (one.name == name) return one;
    return {};
}

Stash make(const char* name, MemoryPool& pool, std::size_t bytes = 100'000) {
    return stash(block_with(Bytes(bytes, std::byte{1}), pool), {.name = name, .pool = &pool});
}

TEST(StashesInSnapshots, AreSumsOfTheirName) {
    MemoryPool pool;
    Stash first = make("summed", pool);
    Stash second = make("summed", pool, 50'000);
    const StashStatistics both = named("summed");
    EXPECT_EQ(both.kind, StashStatistics::Kind::stashes);
    EXPECT_EQ(both.tensors, 2U);
    EXPECT_EQ(both.stashes, 2U);
    EXPECT_EQ(both.stashed_bytes, 150'000U);
    EXPECT_EQ(both.compressed_bytes, first.bytes_at_rest() + second.bytes_at_rest());
    EXPECT_EQ(both.compressed_bytes, pool.statistics().in_use_bytes);
    EXPECT_EQ(both.spilled_bytes, 0U);
    EXPECT_GT(both.stash_ns, 0U);
    (void)first.restore();
    second = Stash();
    const StashStatistics after = named("summed");
    EXPECT_EQ(after.id, both.id);
    EXPECT_EQ(after.tensors, 0U);
    EXPECT_EQ(after.stashed_bytes, 0U);
    EXPECT_EQ(after.compressed_bytes, 0U);
    EXPECT_EQ(after.restores, 1U);
    EXPECT_EQ(after.stashes, 2U);
    EXPECT_GT(after.restore_ns, 0U);
}

TEST(StashesInSnapshots, FollowTheStashThatIsMoved) {
    MemoryPool pool;
    Stash first = make("moved", pool);
    const Stash second = std::move(first);
    EXPECT_EQ(named("moved").tensors, 1U);
}

TEST(StashesInSnapshots, CountFailures) {
    MemoryPool pool;
    MemoryPool full(PoolOptions{.max_capacity = 65536});
    PooledAllocation block = block_with(Bytes(1'000'000, std::byte{1}), pool);
    EXPECT_THROW((void)stash(std::move(block), {.name = "failing", .pool = &full}),
                 AllocationError);
    EXPECT_EQ(named("failing").failures, 1U);
    EXPECT_EQ(named("failing").tensors, 0U);
}

TEST(StashesInSnapshots, CountRestoresWithoutMemory) {
    MemoryPool pool;
    MemoryPool full(PoolOptions{.max_capacity = 65536});
    Stash kept = make("restored in vain", pool, 1'000'000);
    EXPECT_THROW((void)kept.restore(full), AllocationError);
    EXPECT_EQ(named("restored in vain").failures, 1U);
    EXPECT_EQ(named("restored in vain").restores, 0U);
    EXPECT_EQ(named("restored in vain").tensors, 1U);
}

TEST(StashesInSnapshots, NameTheBudgetThatIsCharged) {
    Budget budget("of stashes");
    MemoryPool with_budget(PoolOptions{.budget = &budget});
    const Stash of_pool = make("in its pool", with_budget);
    EXPECT_EQ(named("in its pool").budget, budget.statistics().id);
    MemoryPool without;
    const Stash of_none = make("without", without);
    EXPECT_EQ(named("without").budget, 0U);
    const BudgetScope scope(budget);
    const Stash of_scope = make("in a scope", without);
    EXPECT_EQ(named("in a scope").budget, budget.statistics().id);
}

TEST(StashesInSnapshots, ContainMaps) {
    Budget budget("of the map", {.hard = 64 << 20});
    StashedMap<int> map({.name = "features", .budget = &budget, .memory_bytes = 150'000});
    for (int key = 0; key < 3; ++key)
        map.put(key, block_with(Bytes(100'000, std::byte{1}), map.pool()));
    (void)map.get(0);
    const StashStatistics seen = named("features");
    const StashedMapStatistics own = map.statistics();
    EXPECT_EQ(seen.kind, StashStatistics::Kind::map);
    EXPECT_EQ(seen.budget, budget.statistics().id);
    EXPECT_EQ(seen.tensors, 3U);
    EXPECT_EQ(seen.tensors, own.entries);
    EXPECT_EQ(seen.memory_bytes, own.memory_bytes);
    EXPECT_EQ(seen.stashed_bytes, own.stashed_bytes);
    EXPECT_EQ(seen.stashed_bytes, 200'000U);
    EXPECT_EQ(seen.compressed_bytes, own.compressed_bytes);
    EXPECT_EQ(seen.misses, 1U);
    EXPECT_EQ(seen.restores, 1U);
    EXPECT_EQ(seen.stash_ns, own.stash_ns);
    EXPECT_EQ(named(map.pool().name()).id, seen.id) << "its entries are no stashes of their own";
}

TEST(StashesInSnapshots, ForgetMapsThatEnded) {
    { const StashedMap<int> map({.name = "short-lived"}); }
    EXPECT_EQ(named("short-lived").id, 0U);
}

}  // namespace
}  // namespace tensorpool::stashing
