#include "blocks/marked_set.hpp"

#include <gtest/gtest.h>

#include "blocks/pool_parts.hpp"
#include "blocks/thread_registry.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

TEST(MarkedSet, IsMadeOncePerPool) {
    PoolParts pool;
    BucketSet* const set = thread_registry().marked_set(pool.set);
    ASSERT_NE(set, nullptr);
    EXPECT_TRUE(set->is_marked());
    EXPECT_EQ(&set->first(), &pool.set);
    EXPECT_EQ(thread_registry().marked_set(pool.set), set);
}

TEST(MarkedSet, CacheBelongsToTheThreadsCacheOfTheFirstSet) {
    PoolParts pool;
    Cache* const cache = attach_marked(pool.set);
    ASSERT_NE(cache, nullptr);
    EXPECT_EQ(&cache->set(), pool.set.shared().marked.load());
    EXPECT_EQ(attach_marked(pool.set), cache);
    Cache* const first = thread_registry().attached(pool.set);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->marked, cache);
    EXPECT_EQ(own_cache(cache->set()), cache);
}

TEST(MarkedSet, FreesAreHiddenInCachesThatExistAndInLaterOnes) {
    PoolParts pool;
    Cache* const cache = thread_registry().attach(pool.set);
    EXPECT_LT(cache->first_unguarded, UINTPTR_MAX);
    hide_frees(pool.set);
    EXPECT_EQ(cache->first_unguarded, UINTPTR_MAX);
    testing::LooseCache later(pool);
    EXPECT_EQ(later.first_unguarded, UINTPTR_MAX);
}

TEST(MarkedSet, BlocksOutsideOfTheLowAddressesHideFrees) {
    PoolParts pool;
    BucketSet& set = *thread_registry().marked_set(pool.set);
    void* low = nullptr;
    ASSERT_EQ(set[3].spans.take(&low, 1, PoolParts::path()), 1U);
    note_addresses(set, &low, 1);
    EXPECT_EQ(pool.set.shared().hides_frees, !set.lies_low(low));
    void* const high = pool.take(3, 1).front();
    note_addresses(set, &high, 1);
    EXPECT_TRUE(pool.set.shared().hides_frees);
}

}  // namespace
}  // namespace tensorpool::blocks
