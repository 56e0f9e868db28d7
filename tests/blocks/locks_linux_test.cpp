// The calls of each class wait while another thread holds the lock, as it does during a fork.

#include <gtest/gtest.h>

#include "blocks/bucket_shard.hpp"
#include "blocks/magazine.hpp"
#include "blocks/pool_parts.hpp"
#include "support/waits_for_lock_linux.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;
using testing::waits_for;

class BlocksLocks : public ::testing::Test {
protected:
    static constexpr unsigned bucket = 3;

    void SetUp() override {
        if (!testing::can_see_waits()) GTEST_SKIP() << "/proc does not show what threads wait for";
    }

    PoolParts pool_{{.states = States::uses}};
};

TEST_F(BlocksLocks, CallsOfABucketWait) {
    Bucket& central = pool_.set[bucket];
    std::vector<void*> blocks;
    EXPECT_TRUE(waits_for(central, [&] { blocks = pool_.take(bucket, 2); }));
    ASSERT_EQ(blocks.size(), 2U);
    EXPECT_TRUE(waits_for(central, [&] { (void)central.find(blocks[0]); }));
    EXPECT_TRUE(waits_for(central, [&] { pool_.bring_home(bucket, {blocks[1]}); }));
    pool_.bring_home(bucket, {blocks[0]});
}

TEST_F(BlocksLocks, CallsWithoutACacheWaitForTheSharedCounters) {
    std::mutex& counters = pool_.counters.shared_mutex();
    const std::size_t bytes = detail::bucket_bytes(bucket);
    pages::SlowPath path;
    void* block = nullptr;
    EXPECT_TRUE(
        waits_for(counters, [&] { block = pool_.set.allocate_direct(bucket, bytes, path); }));
    EXPECT_TRUE(waits_for(counters, [&] { pool_.set.deallocate_direct(bucket, block, path); }));
    block = pool_.take(bucket, 1).front();
    EXPECT_TRUE(waits_for(counters, [&] { pool_.set.return_direct(bucket, &block, 1, path); }));
}

TEST_F(BlocksLocks, MagazineStoreWaits) {
    MagazineStore store;
    Magazine* magazine = nullptr;
    EXPECT_TRUE(waits_for(store, [&] { magazine = store.make(); }));
    MagazineList list;
    list.push_front(*magazine);
    EXPECT_TRUE(waits_for(store, [&] { store.destroy(list); }));
}

}  // namespace
}  // namespace tensorpool::blocks
