#include "blocks/thread_registry.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "blocks/pool_parts.hpp"
#include "blocks/scarce_memory.hpp"
#include "blocks/worker.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;
using testing::ScarceMemory;
using testing::Worker;

constexpr unsigned bucket_1k = 4;

TEST(ThreadRegistry, ThreadGetsOneCacheForEachPool) {
    PoolParts pool;
    PoolParts other;
    EXPECT_EQ(thread_registry().attached(pool.set), nullptr);
    Cache* const cache = thread_registry().attach(pool.set);
    ASSERT_NE(cache, nullptr);
    EXPECT_EQ(&cache->set(), &pool.set);
    EXPECT_EQ(thread_registry().attach(pool.set), cache);
    EXPECT_EQ(thread_registry().attached(pool.set), cache);
    EXPECT_EQ(&detail::thread_cache(detail::TablePlace(pool.set.number())), cache);
    EXPECT_NE(thread_registry().attach(other.set), cache);
    EXPECT_EQ(pool.counters.taken_count(), 1U);
}

TEST(ThreadRegistry, EachThreadGetsItsOwnCache) {
    PoolParts pool;
    std::set<Cache*> caches;
    std::latch all_have_one(4);
    std::vector<std::thread> threads;
    std::mutex mutex;
    for (unsigned i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            Cache* const cache = thread_registry().attach(pool.set);
            {
                const std::lock_guard guard(mutex);
                caches.insert(cache);
            }
            all_have_one.arrive_and_wait();
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(caches.size(), 4U);
    EXPECT_EQ(caches.count(nullptr), 0U);
}

TEST(ThreadRegistry, ReturnsTheNameOfAPool) {
    std::optional<PoolParts> pool(std::in_place);
    const unsigned number = pool->set.number();
    char name[16] = "before";
    EXPECT_TRUE(thread_registry().name_of(number, name, sizeof name));
    EXPECT_STREQ(name, "parts");
    EXPECT_TRUE(thread_registry().name_of(number, name, 3));
    EXPECT_STREQ(name, "pa");
    pool.reset();
    EXPECT_FALSE(thread_registry().name_of(number, name, sizeof name));
}

// Pools that are destroyed -----------------------------------------------------------------------

TEST(ThreadRegistry, PoolWithAReusedNumberHasNoStaleCacheInARunningThread) {
    Worker worker;
    std::optional<PoolParts> pool(std::in_place);
    const unsigned number = pool->set.number();
    worker.does([&] { pool->deallocate(bucket_1k, pool->allocate(bucket_1k)); });
    pool.reset();
    pool.emplace();
    ASSERT_EQ(pool->set.number(), number);
    worker.does([&] {
        EXPECT_EQ(thread_registry().attached(pool->set), nullptr);
        EXPECT_EQ(detail::thread_cache(detail::TablePlace(number)).pop(bucket_1k, 1), nullptr);
        void* const block = pool->allocate(bucket_1k);
        EXPECT_TRUE(pool->set[bucket_1k].spans.find(block).in_span);
        pool->deallocate(bucket_1k, block);
    });
    EXPECT_EQ(pool->counters.taken_count(), 1U);
}

TEST(ThreadRegistry, ThreadMayOutliveAPool) {
    auto worker = std::make_unique<Worker>();
    PoolParts other;
    {
        PoolParts pool;
        worker->does([&] {
            pool.allocate(bucket_1k);
            other.allocate(bucket_1k);
        });
    }
    worker.reset();
    EXPECT_EQ(other.counters.taken_count(), 0U);
}

// Refused memory ---------------------------------------------------------------------------------

class AttachWithoutMemory : public ::testing::Test {
protected:
    void use_up_records() {
        const ScarceMemory scarce;
        while (pool_.records.allocate(8, 8) != nullptr) {
        }
    }
    /// Checks that a thread works without a cache while there is no memory, and gets one later.
    void expect_calls_without_a_cache_until_there_is_memory() {
        {
            const ScarceMemory scarce;
            EXPECT_EQ(thread_registry().attach(pool_.set), nullptr);
            void* const block = pool_.allocate(bucket_1k);
            EXPECT_NE(block, nullptr);
            pool_.deallocate(bucket_1k, block);
            EXPECT_EQ(pool_.parked_bytes(), 0U);
            EXPECT_EQ(pool_.in_use_bytes(), 0U);
            EXPECT_EQ(pool_.held_bytes(), some_.size() * 1024);
        }
        const std::uint64_t threads = pool_.counters.taken_count();
        Cache* const cache = thread_registry().attach(pool_.set);
        ASSERT_NE(cache, nullptr);
        EXPECT_EQ(thread_registry().attach(pool_.set), cache);
        EXPECT_EQ(pool_.counters.taken_count(), threads + 1);
        pool_.deallocate(bucket_1k, pool_.allocate(bucket_1k));
        EXPECT_GT(pool_.parked_bytes(), 0U);
    }

    PoolParts pool_;
    // Gives the bucket a span with room.
    std::vector<void*> some_ = pool_.take(bucket_1k, 2);
};

TEST_F(AttachWithoutMemory, ThreadWithoutMemoryForACacheWorksWithoutOne) {
    use_up_records();
    expect_calls_without_a_cache_until_there_is_memory();
}

TEST_F(AttachWithoutMemory, ThreadWithoutMemoryForCountersWorksWithoutACache) {
    // Leaves a free cache of an ended thread, and uses up all mapped counters.
    std::thread([this] { thread_registry().attach(pool_.set); }).join();
    {
        const ScarceMemory scarce;
        while (pool_.counters.take() != nullptr) {
        }
    }
    expect_calls_without_a_cache_until_there_is_memory();
}

TEST_F(AttachWithoutMemory, ThreadWithoutMemoryForItsTableWorksWithoutACache) {
    // Makes caches and counters for many threads, so that memory is missing for tables only.
    std::deque<Cache> caches(200);
    for (Cache& cache : caches) pool_.set.free_caches.push_front(cache);
    std::vector<statistics::OwnedCounters*> counters(caches.size());
    for (statistics::OwnedCounters*& owned : counters) owned = pool_.counters.take();
    for (statistics::OwnedCounters* const owned : counters) pool_.counters.give_back(*owned);

    std::vector<std::unique_ptr<Worker>> workers;
    bool refused = false;
    while (!refused && workers.size() < caches.size()) {
        workers.push_back(std::make_unique<Worker>());
        workers.back()->does([&] {
            const ScarceMemory scarce;
            refused = thread_registry().attach(pool_.set) == nullptr;
        });
    }
    ASSERT_TRUE(refused);
    workers.back()->does([&] { expect_calls_without_a_cache_until_there_is_memory(); });
}

}  // namespace
}  // namespace tensorpool::blocks
