#include "blocks/thread_registry.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "blocks/pool_parts.hpp"
#include "support/child_process.hpp"

namespace tensorpool::blocks {
namespace {

using testing::exit_code_of_child;
using testing::PoolParts;

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
        ASSERT_LT(number, ThreadRegistry::most_pools);
    }
    EXPECT_EQ(numbers.count(ThreadRegistry::global_number), 0U);
    EXPECT_EQ(numbers.size(), ThreadRegistry::most_pools - 1U);
    const unsigned last = *numbers.rbegin();
    registry.give_back_number(last);
    EXPECT_EQ(registry.take_number(), last);
    for (const unsigned number : numbers) registry.give_back_number(number);
}

TEST(ThreadRegistry, GivesAThreadOneCacheForEachPool) {
    PoolParts pool;
    PoolParts other;
    EXPECT_EQ(ThreadRegistry::attached(pool.set), nullptr);
    Cache* const cache = thread_registry().attach(pool.set);
    ASSERT_NE(cache, nullptr);
    EXPECT_EQ(&cache->set(), &pool.set);
    EXPECT_EQ(thread_registry().attach(pool.set), cache);
    EXPECT_EQ(ThreadRegistry::attached(pool.set), cache);
    EXPECT_EQ(&detail::thread_cache(pool.set.number()), cache);
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

/// A thread that does what it is told, one thing after another, and lives meanwhile.
class Worker {
public:
    Worker() : thread_([this] { run(); }) {}
    ~Worker() {
        do_task(nullptr);
        thread_.join();
    }
    template <class Function>
    void does(Function function) {
        const std::function<void()> task = function;
        do_task(&task);
    }

private:
    void do_task(const std::function<void()>* task) {
        std::unique_lock lock(mutex_);
        task_ = task;
        waiting_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !waiting_; });
    }
    void run() {
        std::unique_lock lock(mutex_);
        for (bool more = true; more;) {
            changed_.wait(lock, [this] { return waiting_; });
            more = task_ != nullptr;
            if (more) (*task_)();
            waiting_ = false;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* task_ = nullptr;
    bool waiting_ = false;
    std::thread thread_;
};

TEST(ThreadRegistry, LivingThreadHasNoStaleCacheForAPoolThatTookAnEndedOnesNumber) {
    Worker worker;
    std::optional<PoolParts> pool(std::in_place);
    const unsigned number = pool->set.number();
    worker.does([&] { pool->deallocate(bucket_1k, pool->allocate(bucket_1k)); });
    pool.reset();
    pool.emplace();
    ASSERT_EQ(pool->set.number(), number);
    worker.does([&] {
        EXPECT_EQ(ThreadRegistry::attached(pool->set), nullptr);
        EXPECT_EQ(detail::thread_cache(number).pop(bucket_1k, 1), nullptr);
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

TEST(ThreadRegistry, MorePoolsThanTablesHaveRoomForWorkWithoutCaches) {
    std::vector<std::unique_ptr<PoolParts>> pools;
    for (unsigned i = 0; i < detail::cached_pool_count + 10; ++i) {
        pools.push_back(std::make_unique<PoolParts>());
    }
    unsigned cached = 0;
    for (const auto& pool : pools) {
        void* const block = pool->allocate(bucket_1k);
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(pool->in_use_bytes(), 1024U);
        pool->deallocate(bucket_1k, block);
        EXPECT_EQ(pool->in_use_bytes(), 0U);
        EXPECT_EQ(pool->slots.taken_count(), pool->set.may_cache() ? 1U : 0U);
        cached += pool->set.may_cache();
        EXPECT_EQ(detail::thread_cache(detail::cached_pool_count).pop(bucket_1k, 1), nullptr);
    }
    EXPECT_EQ(cached, detail::cached_pool_count - 1);
    const unsigned last = pools.back()->set.number();
    pools.clear();
    EXPECT_GT(last, PoolParts().set.number());
}

// Memory that cannot be had ----------------------------------------------------------------------

class AttachWithoutMemory : public ::testing::Test {
protected:
    static void limit_data(rlim_t bytes) {
        rlimit limit{};
        getrlimit(RLIMIT_DATA, &limit);
        limit.rlim_cur = std::min(bytes, limit.rlim_max);
        setrlimit(RLIMIT_DATA, &limit);
    }
    /// What a child finds that may have no more memory, and then some again.
    template <class Function>
    static int without_memory(Function prepare) {
        return exit_code_of_child([&] {
            PoolParts pool;
            const std::vector<void*> some = pool.take(bucket_1k, 2);
            prepare(pool);
            limit_data(4096);
            while (pool.records.allocate(8, 8) != nullptr) {
            }
            if (thread_registry().attach(pool.set) != nullptr) return 1;
            void* const block = pool.allocate(bucket_1k);
            if (block == nullptr) return 2;
            pool.deallocate(bucket_1k, block);
            if (pool.in_use_bytes() != 0 || pool.held_bytes() != 0) return 3;
            limit_data(RLIM_INFINITY);
            Cache* const cache = thread_registry().attach(pool.set);
            if (cache == nullptr) return 4;
            if (thread_registry().attach(pool.set) != cache || pool.slots.taken_count() == 0) return 5;
            pool.deallocate(bucket_1k, pool.allocate(bucket_1k));
            return pool.parked_bytes() > 0 ? 0 : 6;
        });
    }
};

TEST_F(AttachWithoutMemory, ThreadWithoutMemoryForACacheWorksWithoutUntilThereIsSome) {
    EXPECT_EQ(without_memory([](PoolParts&) {}), 0);
}

TEST_F(AttachWithoutMemory, ThreadWithoutMemoryForCountersWorksWithoutACacheUntilThereIsSome) {
    EXPECT_EQ(without_memory([](PoolParts& pool) {
        // A cache that another thread left, and all counters of a piece of memory in use.
        std::thread([&] { thread_registry().attach(pool.set); }).join();
        const std::size_t held = pool.slots.bytes_held();
        std::vector<statistics::CounterSlot*> slots;
        while (pool.slots.bytes_held() == held) slots.push_back(pool.slots.take());
        pool.slots.give_back(*slots.back());
        for (unsigned i = 1; i < slots.size(); ++i) pool.slots.take();
    }), 0);
}

}  // namespace
}  // namespace tensorpool::blocks
