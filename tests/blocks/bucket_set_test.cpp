#include "blocks/bucket_set.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "blocks/pool_parts.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

constexpr unsigned bucket_1k = 4;
constexpr std::size_t per_processor = 1000;
constexpr std::size_t per_thread = 100;

TEST(ParkingLimit, GrantsNoMoreThanTheLimit) {
    ParkingLimit limit(per_processor, per_thread);
    const std::size_t max_bytes = limit.max_bytes();
    EXPECT_GE(max_bytes, per_processor);
    EXPECT_TRUE(limit.take(max_bytes - 1));
    EXPECT_FALSE(limit.take(2));
    EXPECT_TRUE(limit.take(1));
    EXPECT_FALSE(limit.take(1));
    limit.give_back(10);
    EXPECT_TRUE(limit.take(10));
    EXPECT_EQ(limit.taken(), max_bytes);
}

TEST(ParkingLimit, EachThreadRaisesTheLimit) {
    ParkingLimit limit(per_processor, per_thread);
    EXPECT_TRUE(limit.take(limit.max_bytes()));
    limit.add_thread();
    EXPECT_TRUE(limit.take(per_thread));
    limit.remove_thread();
    EXPECT_FALSE(limit.take(1)) << "room that was taken stays taken";
    limit.begin_again(0);
    EXPECT_TRUE(limit.take(limit.max_bytes()));
}

TEST(BucketSet, HasABucketOfEachSize) {
    PoolParts pool;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        EXPECT_EQ(pool.set[bucket].traits.number, bucket);
        EXPECT_EQ(pool.set[bucket].traits.block_bytes, detail::bucket_bytes(bucket));
    }
}

TEST(BucketSet, CachesOfACheckedPoolServeOnSlowPathsOnly) {
    PoolParts pool({.states = States::requests});
    Cache* const cache = thread_registry().attach(pool.set);
    ASSERT_NE(cache, nullptr);
    EXPECT_EQ(thread_registry().attached(pool.set), cache);
    EXPECT_EQ(own_cache(pool.set), cache);
    pool.deallocate(bucket_1k, pool.allocate(bucket_1k));
    EXPECT_GT(pool.parked_bytes(), 0U);
    const detail::TablePlace place(pool.set.number());
    EXPECT_EQ(&detail::thread_cache(place), &empty_cache);
    thread_registry().hide_caches();
    thread_registry().show_caches();
    EXPECT_EQ(thread_registry().attached(pool.set), cache);
    EXPECT_EQ(&detail::thread_cache(place), &empty_cache);
}

TEST(BucketSet, DrainReturnsTheBlocksOfAllDepots) {
    PoolParts pool;
    testing::LooseCache cache(pool);
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        PoolParts::deallocate(cache, bucket, PoolParts::allocate(cache, bucket, 300));
    }
    cache.give_back_all(testing::PoolParts::path());
    pool.drain();
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        EXPECT_EQ(pool.capacity_of(bucket), 0U) << bucket;
    }
    EXPECT_EQ(pool.set.magazine_bytes(), 0U);
    EXPECT_EQ(pool.totals.free_bytes, pool.heap.capacity().bytes());
}

/// Blocks that are passed from one thread to another.
class Exchange {
public:
    void put(void* block) {
        const std::lock_guard guard(mutex_);
        blocks_.push_back(block);
    }
    void* take() {
        const std::lock_guard guard(mutex_);
        if (blocks_.empty()) return nullptr;
        void* const block = blocks_.back();
        blocks_.pop_back();
        return block;
    }

private:
    std::mutex mutex_;
    std::vector<void*> blocks_;
};

/// The first word of a block: the number of the thread that holds it, or 0.
std::atomic<unsigned>& owner_of(void* block) {
    return *static_cast<std::atomic<unsigned>*>(block);
}

class BucketSetThreads : public ::testing::Test {
protected:
    // The first word of a fresh block is 0, and it is reset to 0 before the block is freed.
    void work(unsigned self, unsigned steps, bool drains) {
        std::minstd_rand random(self);
        for (unsigned step = 0; step < steps; ++step) {
            const auto bucket = static_cast<unsigned>(random() % detail::bucket_count);
            if (random() % 2 == 0) {
                void* const block = pool_.allocate(bucket);
                if (owner_of(block).exchange(self, std::memory_order_relaxed) != 0) ++violations_;
                exchanges_[bucket].put(block);
            } else if (void* const block = exchanges_[bucket].take()) {
                free(bucket, block);
            }
            if (drains && step % 512 == 0)
                pool_.set.drain(BucketDepot::Magazines::destroy, PoolParts::path());
        }
    }
    void free(unsigned bucket, void* block) {
        if (owner_of(block).exchange(0, std::memory_order_relaxed) == 0) ++violations_;
        pool_.deallocate(bucket, block);
    }

    PoolParts pool_;
    Exchange exchanges_[detail::bucket_count];
    std::atomic<unsigned> violations_ = 0;
};

TEST_F(BucketSetThreads, EveryBlockHasOneHolderWhileThreadsExchangeAndTrim) {
    constexpr unsigned threads = 4;
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; ++i) {
        workers.emplace_back([this, i] { work(i + 1, 20'000, i == 0); });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(violations_, 0U);
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        while (void* const block = exchanges_[bucket].take()) free(bucket, block);
    }
    Cache* const cache = thread_registry().attached(pool_.set);
    ASSERT_NE(cache, nullptr);
    cache->give_back_all(testing::PoolParts::path());
    pool_.drain();
    EXPECT_EQ(violations_, 0U);
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    EXPECT_EQ(pool_.held_bytes(), 0U);
    EXPECT_EQ(pool_.totals.free_bytes, pool_.heap.capacity().bytes());
    EXPECT_EQ(pool_.set.magazine_bytes(), 0U);
}

}  // namespace
}  // namespace tensorpool::blocks
