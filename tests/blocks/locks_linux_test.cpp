// The calls of each class wait while another thread holds the lock, as it does during a fork.

#include <gtest/gtest.h>

#include "blocks/bucket_shard.hpp"
#include "blocks/magazine.hpp"
#include "blocks/pool_parts.hpp"
#include "support/waits_for_lock_linux.hpp"

namespace tensorpool::blocks {
namespace {

using testing::LooseCache;
using testing::PoolParts;
using testing::waits_for;

/// A claim of a cache by a thread that takes back its blocks, with the locks that a fork holds.
struct ClaimDuringAFork {
    void lock() {
        thread_registry().before_fork();
        cache.claim();
    }
    void unlock() {
        cache.end_claim();
        thread_registry().after_fork_in_parent();
    }

    Cache& cache;
};

class BlocksLocks : public ::testing::Test {
protected:
    static constexpr unsigned bucket = 3;

    void SetUp() override {
        if (!testing::can_see_waits()) GTEST_SKIP() << "/proc does not show what threads wait for";
    }

    PoolParts pool_{{.states = States::uses}};
};

TEST_F(BlocksLocks, CallsOfABucketWait) {
    BucketSpans& spans = pool_.set[bucket].spans;
    std::vector<void*> blocks;
    EXPECT_TRUE(waits_for(spans, [&] { blocks = pool_.take(bucket, 2); }));
    ASSERT_EQ(blocks.size(), 2U);
    EXPECT_TRUE(waits_for(spans, [&] { (void)spans.find(blocks[0]); }));
    EXPECT_TRUE(waits_for(spans, [&] { pool_.bring_home(bucket, {blocks[1]}); }));
    pool_.bring_home(bucket, {blocks[0]});
}

TEST_F(BlocksLocks, CallsWithoutACacheWaitForTheSharedCounters) {
    std::mutex& counters = pool_.counters.shared_mutex();
    const std::size_t bytes = detail::bucket_bytes(bucket);
    pages::SlowPath path;
    void* block = nullptr;
    EXPECT_TRUE(
        waits_for(counters, [&] { block = allocate_direct(pool_.set, bucket, bytes, path); }));
    EXPECT_TRUE(waits_for(counters, [&] { deallocate_direct(pool_.set, bucket, block, path); }));
}

TEST_F(BlocksLocks, MagazineStoreWaits) {
    MagazineStore store;
    Magazine* magazine = nullptr;
    EXPECT_TRUE(waits_for(store, [&] { magazine = store.make(); }));
    MagazineList list;
    list.push_front(*magazine);
    EXPECT_TRUE(waits_for(store, [&] { store.destroy(list); }));
}

TEST_F(BlocksLocks, CallsOfACacheWaitWhileItsBlocksAreTakenBack) {
    LooseCache cache(pool_);
    ClaimDuringAFork claimed{cache};
    EXPECT_TRUE(waits_for(claimed, [&] { cache.parks(bucket, &cache); }));
    EXPECT_TRUE(waits_for(claimed, [&] { cache.give_back_blocks(PoolParts::path()); }));
    EXPECT_TRUE(waits_for(claimed, [&] { cache.large.take(100, pool_.large); }));
    EXPECT_TRUE(waits_for(claimed, [&] { cache.large.give_back(PoolParts::path()); }));
    EXPECT_TRUE(waits_for(claimed, [&] { cache.large.give_back_unneeded(PoolParts::path()); }));
    EXPECT_EQ(pool_.held_bytes(), 0U);
}

TEST_F(BlocksLocks, ShardThatKeepsStatesWaits) {
    MagazineStore magazines;
    const BucketSources sources{"parts",   pool_.heap,   pool_.records,
                                magazines, pool_.totals, States::uses};
    const BucketTraits traits(bucket, sources);
    BucketShard shard(traits, 0);
    pages::BlockStates states;
    EXPECT_TRUE(waits_for(shard, [&] { shard.keep_states(&states); }));
}

}  // namespace
}  // namespace tensorpool::blocks
