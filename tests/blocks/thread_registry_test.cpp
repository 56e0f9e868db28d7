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

TEST(ThreadRegistry, NumbersAreTheLowestThatAreFreeAndNeverTheGlobalPools) {
    ThreadRegistry& registry = thread_registry();
    const unsigned first = registry.take_number();
    const unsigned second = registry.take_number();
    const unsigned third = registry.take_number();
    EXPECT_NE(first, ThreadRegistry::global_number);
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
    registry.give_back_number(second);
    registry.give_back_number(first);
    EXPECT_EQ(registry.take_number(), first);
    EXPECT_EQ(registry.take_number(), second);
    for (const unsigned number : {first, second, third}) registry.give_back_number(number);
}

TEST(ThreadRegistry, GivesEachNumberOnceUntilThereAreNone) {
    ThreadRegistry& registry = thread_registry();
    std::set<unsigned> numbers;
    for (unsigned number = registry.take_number(); number != ThreadRegistry::no_number;
         number = registry.take_number()) {
        ASSERT_TRUE(numbers.insert(number).second);
        ASSERT_LT(number, ThreadRegistry::max_pools);
    }
    EXPECT_EQ(*numbers.begin(), ThreadRegistry::first_number) << "those before are set aside";
    EXPECT_EQ(numbers.size(), ThreadRegistry::max_pools - ThreadRegistry::first_number);
    const unsigned last = *numbers.rbegin();
    registry.give_back_number(last);
    EXPECT_EQ(registry.take_number(), last);
    for (const unsigned number : numbers) registry.give_back_number(number);
}

TEST(ThreadRegistry, GivesAThreadOneCacheForEachPool) {
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
    EXPECT_EQ(pool.slots.taken_count(), 1U);
}

TEST(ThreadRegistry, GivesEachThreadItsOwnCache) {
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

TEST(ThreadRegistry, TellsThePoolsName) {
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

// Pools that end ---------------------------------------------------------------------------------

TEST(ThreadRegistry, LivingThreadHasNoStaleCacheForAPoolThatTookAnEndedOnesNumber) {
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
        EXPECT_TRUE(pool->set[bucket_1k].find(block).in_span);
        pool->deallocate(bucket_1k, block);
    });
    EXPECT_EQ(pool->slots.taken_count(), 1U);
}

TEST(ThreadRegistry, ThreadThatOutlivesAPoolEndsInPeace) {
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
    EXPECT_EQ(other.slots.taken_count(), 0U);
}

// Memory that cannot be had ----------------------------------------------------------------------

class AttachWithoutMemory : public ::testing::Test {
protected:
    void use_up_records() {
        const ScarceMemory scarce;
        while (pool_.records.allocate(8, 8) != nullptr) {
        }
    }
    /// What a thread finds while there is no memory, and then some again.
    void expect_calls_without_a_cache_until_there_is_memory() {
        {
            const ScarceMemory scarce;
            EXPECT_EQ(thread_registry().attach(pool_.set), nullptr);
            void* const block = pool_.allocate(bucket_1k);
            EXPECT_NE(block, nullptr);
            pool_.deallocate(bucket_1k, block);
            EXPECT_EQ(pool_.parked_bytes(), 0U);
            EXPECT_EQ(pool_.in_use_bytes(), 0U);
            EXPECT_EQ(pool_.held_bytes(), 0U);
        }
        const std::uint64_t threads = pool_.slots.taken_count();
        Cache* const cache = thread_registry().attach(pool_.set);
        ASSERT_NE(cache, nullptr);
        EXPECT_EQ(thread_registry().attach(pool_.set), cache);
        EXPECT_EQ(pool_.slots.taken_count(), threads + 1);
        pool_.deallocate(bucket_1k, pool_.allocate(bucket_1k));
        EXPECT_GT(pool_.parked_bytes(), 0U);
    }

    PoolParts pool_;
    // The bucket has a span with room.
    std::vector<void*> some_ = pool_.take(bucket_1k, 2);
};

TEST_F(AttachWithoutMemory, ThreadWithoutMemoryForACacheWorksWithoutOne) {
    use_up_records();
    expect_calls_without_a_cache_until_there_is_memory();
}

TEST_F(AttachWithoutMemory, ThreadWithoutMemoryForCountersWorksWithoutACache) {
    // A cache that another thread left, and all counters of a piece of memory in use.
    std::thread([this] { thread_registry().attach(pool_.set); }).join();
    {
        const ScarceMemory scarce;
        while (pool_.slots.take() != nullptr) {
        }
    }
    expect_calls_without_a_cache_until_there_is_memory();
}

TEST_F(AttachWithoutMemory, ThreadWithoutMemoryForItsTableWorksWithoutACache) {
    // Caches and counters for many threads, so that tables are what the registry lacks.
    std::deque<Cache> caches(200);
    for (Cache& cache : caches) pool_.set.free_caches.push_front(cache);
    std::vector<statistics::OwnedCounters*> slots(caches.size());
    for (statistics::OwnedCounters*& slot : slots) slot = pool_.slots.take();
    for (statistics::OwnedCounters* const slot : slots) pool_.slots.give_back(*slot);

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
