// The leaves of a thread's table.

#include "blocks/thread_caches.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "blocks/pool_parts.hpp"
#include "blocks/taken_numbers.hpp"
#include "blocks/worker.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;
using testing::TakenNumbers;
using testing::Worker;

constexpr unsigned bucket_1k = 4;

detail::ThreadCache& inline_cache(const PoolParts& pool) {
    return detail::thread_cache(detail::TablePlace(pool.set.number()));
}

/// The bytes of the calling thread's table and leaves.
std::size_t table_bytes() {
    std::size_t bytes = sizeof(ThreadCaches);
    for (unsigned leaf = 1; leaf < ThreadCaches::leaf_count; ++leaf) {
        const bool has = own_caches().has_leaf_of(leaf * ThreadCaches::leaf_size);
        bytes += has ? sizeof(OwnLeaf) : 0;
    }
    return bytes;
}

/// Checks that inline calls are served, without slow paths, which would attach a cache.
void expect_inline_calls_to_be_served(PoolParts& pool) {
    pool.deallocate(bucket_1k, pool.allocate(bucket_1k));
    EXPECT_GT(pool.parked_bytes(), 0U);
    void* const block = inline_cache(pool).pop(bucket_1k, 1000);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(inline_cache(pool).push(bucket_1k, block));
    EXPECT_EQ(pool.sums().buckets[bucket_1k].allocations, 2U);
    EXPECT_EQ(pool.in_use_bytes(), 0U);
}

TEST(ThreadCaches, LastOfAThousandPoolsIsServedInline) {
    const TakenNumbers numbers(1000);
    PoolParts pool;
    ASSERT_GE(pool.set.number(), 1000U);
    expect_inline_calls_to_be_served(pool);
}

TEST(ThreadCaches, LastPoolInTheTableIsServedInlineAndTheNextIsNot) {
    static_assert(detail::cached_pool_count >= 4096);
    const TakenNumbers numbers(detail::cached_pool_count - 1);
    PoolParts pool;
    ASSERT_EQ(pool.set.number(), detail::cached_pool_count - 1);
    expect_inline_calls_to_be_served(pool);
    PoolParts beyond;
    EXPECT_FALSE(beyond.set.may_cache());
    EXPECT_EQ(thread_registry().attach(beyond.set), nullptr);
    void* const block = beyond.allocate(bucket_1k);
    EXPECT_EQ(beyond.in_use_bytes(), 1024U);
    beyond.deallocate(bucket_1k, block);
    EXPECT_EQ(beyond.in_use_bytes(), 0U);
    EXPECT_EQ(beyond.counters.taken_count(), 0U);
    const detail::TablePlace nobodys(detail::cached_pool_count);
    EXPECT_EQ(&detail::thread_cache(nobodys), &empty_cache);
}

TEST(ThreadCaches, TableTakesAtMost8KibForTheFirst256Pools) {
    Worker worker;
    worker.does([] {
        std::vector<std::unique_ptr<PoolParts>> pools;
        while (pools.empty() || pools.back()->set.number() < 255) {
            pools.push_back(std::make_unique<PoolParts>());
            ASSERT_NE(thread_registry().attach(pools.back()->set), nullptr);
        }
        EXPECT_LE(table_bytes(), 8192U);
        EXPECT_EQ(table_bytes(), sizeof(ThreadCaches) + 3 * sizeof(OwnLeaf));
    });
}

TEST(ThreadCaches, ThreadHasNoLeafForPoolsItDoesNotUse) {
    const TakenNumbers numbers(700);
    PoolParts pool;
    PoolParts near;
    Worker worker;
    worker.does([&] {
        thread_registry().attach(pool.set);
        EXPECT_EQ(table_bytes(), sizeof(ThreadCaches) + sizeof(OwnLeaf));
        EXPECT_EQ(&inline_cache(near), &empty_cache);
        thread_registry().attach(near.set);
        EXPECT_NE(&inline_cache(near), &inline_cache(pool));
        EXPECT_EQ(table_bytes(), sizeof(ThreadCaches) + sizeof(OwnLeaf));
    });
}

TEST(ThreadCaches, DestroyedPoolLeavesNoCacheInALeafOfARunningThread) {
    const TakenNumbers numbers(700);
    Worker worker;
    std::optional<PoolParts> pool(std::in_place);
    const unsigned number = pool->set.number();
    worker.does([&] { pool->deallocate(bucket_1k, pool->allocate(bucket_1k)); });
    pool.reset();
    pool.emplace();
    ASSERT_EQ(pool->set.number(), number);
    worker.does([&] {
        EXPECT_EQ(&inline_cache(*pool), &empty_cache);
        EXPECT_EQ(own_cache(pool->set), nullptr);
        expect_inline_calls_to_be_served(*pool);
    });
}

TEST(ThreadCaches, LeavesOfAnEndedThreadAreReusedForAnyPool) {
    const TakenNumbers numbers(700);
    PoolParts pool;
    std::optional<TakenNumbers> more(std::in_place, 1500);
    PoolParts far;
    more.reset();
    const OwnCaches* first = nullptr;
    const auto leaf_of = [](PoolParts& of) {
        const OwnCaches* leaf = nullptr;
        std::thread([&] {
            of.deallocate(bucket_1k, of.allocate(bucket_1k));
            leaf = &own_caches().own_leaf(of.set.number());
        }).join();
        return leaf;
    };
    first = leaf_of(pool);
    EXPECT_EQ(pool.parked_bytes(), 0U);
    EXPECT_EQ(leaf_of(far), first);
    EXPECT_EQ(leaf_of(pool), first);
}

TEST(ThreadCaches, HideAndShowApplyToEveryLeaf) {
    const TakenNumbers numbers(700);
    PoolParts pool;
    pool.deallocate(bucket_1k, pool.allocate(bucket_1k));
    thread_registry().hide_caches();
    EXPECT_EQ(&inline_cache(pool), &empty_cache);
    EXPECT_NE(own_cache(pool.set), nullptr);
    thread_registry().show_caches();
    pool.deallocate(bucket_1k, pool.allocate(bucket_1k));
    EXPECT_EQ(&inline_cache(pool), own_cache(pool.set));
}

}  // namespace
}  // namespace tensorpool::blocks
