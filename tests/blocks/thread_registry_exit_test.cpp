// Caches of threads that end.

#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>

#include <string>
#include <thread>
#include <vector>

#include "blocks/pool_parts.hpp"
#include "blocks/thread_registry.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

constexpr unsigned bucket_1k = 4;

class ThreadExit : public ::testing::Test {
protected:
    template <class Function>
    static void in_thread(Function function) {
        std::thread(function).join();
    }
    void expect_nothing_left_of_threads() {
        EXPECT_EQ(pool_.counters.taken_count(), 0U);
        EXPECT_EQ(pool_.parked_bytes(), 0U);
        pool_.drain();  // what depots keep is held as well
        EXPECT_EQ(pool_.held_bytes(), pool_.in_use_bytes());
        EXPECT_EQ(pool_.set.magazine_bytes(), 0U);
    }

    PoolParts pool_;
};

TEST_F(ThreadExit, NextThreadReusesBlocksOfAnEndedThread) {
    std::vector<void*> freed;
    in_thread([&] {
        for (unsigned i = 0; i < 10; ++i) freed.push_back(pool_.allocate(bucket_1k));
        for (void* const block : freed) pool_.deallocate(bucket_1k, block);
    });
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    const std::size_t capacity = pool_.capacity_of(bucket_1k);
    in_thread([&] {
        void* const block = pool_.allocate(bucket_1k);
        EXPECT_EQ(block, freed.back());
        EXPECT_EQ(pool_.sums().buckets[bucket_1k].depot_hits, 1U);
        pool_.deallocate(bucket_1k, block);
    });
    EXPECT_EQ(pool_.capacity_of(bucket_1k), capacity);
    expect_nothing_left_of_threads();
    EXPECT_EQ(pool_.capacity_of(bucket_1k), 0U);
}

TEST_F(ThreadExit, NextThreadReusesCacheAndCountersOfAnEndedThread) {
    Cache* first = nullptr;
    statistics::OwnedCounters* owned = nullptr;
    in_thread([&] {
        first = thread_registry().attach(pool_.set);
        owned = &first->owned_counters();
        pool_.deallocate(bucket_1k, pool_.allocate(bucket_1k));
    });
    in_thread([&] {
        EXPECT_EQ(thread_registry().attach(pool_.set), first);
        EXPECT_EQ(&first->owned_counters(), owned);
        pool_.deallocate(bucket_1k, pool_.allocate(bucket_1k));
    });
    EXPECT_EQ(pool_.sums().buckets[bucket_1k].allocations, 2U);
    EXPECT_EQ(pool_.sums().buckets[bucket_1k].deallocations, 2U);
    expect_nothing_left_of_threads();
}

TEST_F(ThreadExit, NextThreadReusesTheTableOfAnEndedThread) {
    const auto table_of_thread = [this] {
        const void* table = nullptr;
        in_thread([&] {
            thread_registry().attach(pool_.set);
            table = detail::thread_table;
        });
        return table;
    };
    const void* const first = table_of_thread();
    EXPECT_EQ(table_of_thread(), first);
    EXPECT_NE(first, detail::thread_table);
}

TEST_F(ThreadExit, AThousandSuccessiveThreadsTakeTheRecordsOfOne) {
    const auto live = [&] {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            pool_.deallocate(bucket, pool_.allocate(bucket));
        }
    };
    in_thread(live);
    const std::size_t records = pool_.records.bytes_held();
    const std::size_t counters = pool_.totals.record_bytes.load();
    const std::size_t magazines = pool_.set.magazine_bytes();
    const std::size_t capacity = pool_.heap.capacity().bytes();
    for (unsigned i = 0; i < 1000; ++i) in_thread(live);
    EXPECT_EQ(pool_.records.bytes_held(), records);
    EXPECT_EQ(pool_.totals.record_bytes.load(), counters);
    EXPECT_EQ(pool_.set.magazine_bytes(), magazines);
    EXPECT_EQ(pool_.heap.capacity().bytes(), capacity);
    expect_nothing_left_of_threads();
}

TEST_F(ThreadExit, BlocksThatAnEndedThreadAllocatedAreStillInUse) {
    void* block = nullptr;
    in_thread([&] { block = pool_.allocate(bucket_1k); });
    EXPECT_EQ(pool_.in_use_bytes(), 1024U);
    in_thread([&] { pool_.deallocate(bucket_1k, block); });
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    expect_nothing_left_of_threads();
}

struct FreesWhenItEnds {
    PoolParts* pool = nullptr;
    void* block = nullptr;
    ~FreesWhenItEnds() {
        if (pool != nullptr) pool->deallocate(bucket_1k, block);
    }
};

TEST_F(ThreadExit, ThreadLocalDestructorMayFree) {
    in_thread([&] {
        static thread_local FreesWhenItEnds object;
        object.pool = &pool_;
        object.block = pool_.allocate(bucket_1k);
    });
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    expect_nothing_left_of_threads();
}

/// A value for a pthread key whose destructor allocates and frees in some of the rounds in which
/// POSIX calls destructors.
class FreesInRounds {
public:
    FreesInRounds(PoolParts& pool, unsigned first, unsigned last)
        : pool_(pool), first_(first), last_(last) {
        EXPECT_EQ(pthread_key_create(&key_, run), 0);
    }
    ~FreesInRounds() { pthread_key_delete(key_); }
    FreesInRounds(const FreesInRounds&) = delete;
    FreesInRounds& operator=(const FreesInRounds&) = delete;

    void arm() { pthread_setspecific(key_, this); }
    unsigned rounds() const { return round_; }

private:
    static void run(void* self) { static_cast<FreesInRounds*>(self)->run_round(); }
    void run_round() {
        ++round_;
        if (round_ >= first_) {
            void* const block = pool_.allocate(bucket_1k);
            EXPECT_NE(block, nullptr);
            pool_.deallocate(bucket_1k, block);
        }
        if (round_ < last_) arm();
    }

    PoolParts& pool_;
    const unsigned first_;
    const unsigned last_;
    unsigned round_ = 0;
    pthread_key_t key_{};
};

struct Rounds {
    unsigned first;
    unsigned last;
};

std::vector<Rounds> all_rounds() {
#ifdef __SANITIZE_THREAD__
    // The sanitizer destroys its state of a thread in the last round. Instrumented code must not
    // run after that.
    constexpr unsigned max_rounds = PTHREAD_DESTRUCTOR_ITERATIONS - 1;
#else
    constexpr unsigned max_rounds = PTHREAD_DESTRUCTOR_ITERATIONS;
#endif
    std::vector<Rounds> all;
    for (unsigned last = 1; last <= max_rounds; ++last) {
        for (unsigned first = 1; first <= last; ++first) all.push_back({first, last});
    }
    return all;
}

class ThreadExitRounds : public ThreadExit, public ::testing::WithParamInterface<Rounds> {};

INSTANTIATE_TEST_SUITE_P(FirstAndLast, ThreadExitRounds, ::testing::ValuesIn(all_rounds()),
                         [](const auto& test) {
                             return std::to_string(test.param.first) + "to" +
                                    std::to_string(test.param.last);
                         });

TEST_P(ThreadExitRounds, DestructorOfAKeyThatUsesThePoolLosesNothing) {
    // The registry's own key is older, so in each round its destructor runs before this one.
    FreesInRounds value(pool_, GetParam().first, GetParam().last);
    in_thread([&] {
        pool_.deallocate(bucket_1k, pool_.allocate(bucket_1k));
        value.arm();
    });
    EXPECT_EQ(value.rounds(), GetParam().last);
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    expect_nothing_left_of_threads();
}

TEST_F(ThreadExit, ThreadsEndWhilePoolsAreMadeAndDestroyed) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2; ++i) {
        threads.emplace_back([this] {
            for (unsigned round = 0; round < 100; ++round) {
                in_thread([this] { pool_.deallocate(bucket_1k, pool_.allocate(bucket_1k)); });
            }
        });
    }
    for (unsigned round = 0; round < 100; ++round) {
        PoolParts pool;
        in_thread([&] { pool.deallocate(bucket_1k, pool.allocate(bucket_1k)); });
        EXPECT_EQ(pool.counters.taken_count(), 0U);
    }
    for (std::thread& thread : threads) thread.join();
    expect_nothing_left_of_threads();
}

}  // namespace
}  // namespace tensorpool::blocks
