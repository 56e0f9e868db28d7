#include "blocks/take_back.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "blocks/pool_parts.hpp"
#include "blocks/worker.hpp"
#include "platform/platform.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;
using testing::Worker;

constexpr unsigned bucket_1k = 4;

/// Allocates and frees some blocks of every bucket.
void use_all_buckets(PoolParts& pool) {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        std::vector<void*> blocks;
        for (unsigned i = 0; i < 40; ++i) blocks.push_back(pool.allocate(bucket));
        for (void* const block : blocks) pool.deallocate(bucket, block);
    }
}

void take_back(PoolParts& pool, TakeFrom from) {
    blocks::take_back(pool.set, from, PoolParts::path());
}

class TakeBack : public ::testing::Test {
protected:
    void SetUp() override {
        if (!platform::prepare_fences()) GTEST_SKIP() << "no fences of all threads";
    }
    PoolParts pool_;
};

TEST_F(TakeBack, ReturnsBlocksParkedByASleepingThread) {
    Worker asleep;
    asleep.does([&] { use_all_buckets(pool_); });
    ASSERT_GT(pool_.parked_bytes(), 0U);
    take_back(pool_, TakeFrom::everyone);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    EXPECT_EQ(pool_.set.shared().parking_limit.taken(), 0U);
    pool_.drain();
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        EXPECT_EQ(pool_.capacity_of(bucket), 0U) << bucket;
    }
}

TEST_F(TakeBack, LeavesTheBlocksOfTheCaller) {
    use_all_buckets(pool_);
    const std::size_t parked = pool_.parked_bytes();
    take_back(pool_, TakeFrom::everyone);
    EXPECT_EQ(pool_.parked_bytes(), parked);
}

TEST_F(TakeBack, ThreadContinuesAfterTakeBack) {
    Worker thread;
    std::set<void*> held;
    for (int round = 0; round < 5; ++round) {
        thread.does([&] {
            for (unsigned i = 0; i < 100; ++i) {
                EXPECT_TRUE(held.insert(pool_.allocate(bucket_1k)).second);
            }
            for (unsigned i = 0; i < 70; ++i) {
                pool_.deallocate(bucket_1k, *held.begin());
                held.erase(held.begin());
            }
        });
        take_back(pool_, TakeFrom::everyone);
        EXPECT_EQ(pool_.parked_bytes(), 0U);
        EXPECT_EQ(pool_.in_use_bytes(), held.size() * 1024);
    }
}

TEST_F(TakeBack, RepeatedTakeBackTakesNoBlockTwice) {
    Worker thread;
    void* kept = nullptr;
    thread.does([&] {
        use_all_buckets(pool_);
        kept = pool_.allocate(bucket_1k);
    });
    take_back(pool_, TakeFrom::everyone);
    take_back(pool_, TakeFrom::everyone);
    thread.does([&] { pool_.deallocate(bucket_1k, kept); });
    take_back(pool_, TakeFrom::everyone);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    thread.does([&] { use_all_buckets(pool_); });
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
}

TEST_F(TakeBack, IdleTakesFromThreadsWithoutCallsSinceTheLastCheck) {
    Worker asleep;
    Worker busy;
    asleep.does([&] { use_all_buckets(pool_); });
    busy.does([&] { use_all_buckets(pool_); });
    take_back(pool_, TakeFrom::idle);
    const std::size_t both = pool_.parked_bytes();
    busy.does([&] { pool_.deallocate(bucket_1k, pool_.allocate(bucket_1k)); });
    take_back(pool_, TakeFrom::idle);
    EXPECT_GT(pool_.parked_bytes(), 0U);
    EXPECT_LE(pool_.parked_bytes(), both / 2);
    take_back(pool_, TakeFrom::idle);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
}

TEST_F(TakeBack, EnoughTakesNothingFromBusyThreadsBelowHalfOfTheLimit) {
    Worker busy;
    busy.does([&] { use_all_buckets(pool_); });
    const std::size_t parked = pool_.parked_bytes();
    ASSERT_GT(parked, 0U);
    ASSERT_LE(pool_.set.shared().parking_limit.taken(),
              pool_.set.shared().parking_limit.max_bytes() / 2);
    take_back(pool_, TakeFrom::enough);
    EXPECT_EQ(pool_.parked_bytes(), parked);
}

TEST_F(TakeBack, ManyIdleThreadsParkNoMoreThanTheLimit) {
    std::vector<std::unique_ptr<Worker>> threads;
    for (unsigned i = 0; i < 100; ++i) {
        threads.push_back(std::make_unique<Worker>());
        threads.back()->does([&] { use_all_buckets(pool_); });
        ASSERT_LE(pool_.parked_bytes(), pool_.set.shared().parking_limit.max_bytes()) << i;
    }
    EXPECT_GT(pool_.parked_bytes(), pool_.set.shared().parking_limit.max_bytes() / 8);
    for (const auto& thread : threads) thread->does([&] { use_all_buckets(pool_); });
    EXPECT_LE(pool_.parked_bytes(), pool_.set.shared().parking_limit.max_bytes());
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
}

TEST_F(TakeBack, RoomOfEndedThreadsIsReleased) {
    for (unsigned i = 0; i < 10; ++i) std::thread([&] { use_all_buckets(pool_); }).join();
    EXPECT_EQ(pool_.set.shared().parking_limit.taken(), 0U);
}

// Each block contains its holder's mark while it is held. Uses the smallest blocks, of which
// magazines hold many, and the largest, for which nearly every call takes the slow path.
TEST_F(TakeBack, TakeBackDuringCallsNeverDuplicatesBlocks) {
    constexpr unsigned rounds = 100'000;
    constexpr unsigned buckets[] = {0, detail::bucket_count - 1};
    std::atomic<unsigned> at_work = 2;
    const auto work = [&](unsigned mark) {
        for (unsigned round = 0; round < rounds; ++round) {
            const unsigned bucket = buckets[round % 64 == 0];
            std::array<unsigned*, 3> held{};
            for (unsigned*& block : held) {
                block = static_cast<unsigned*>(pool_.allocate(bucket));
                *block = mark;
            }
            for (unsigned* const block : held) {
                ASSERT_EQ(*block, mark);
                pool_.deallocate(bucket, block);
            }
        }
        --at_work;
    };
    std::vector<std::thread> threads;
    for (unsigned mark = 1; mark <= 2; ++mark) threads.emplace_back(work, mark);
    while (at_work != 0) take_back(pool_, TakeFrom::everyone);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    pool_.drain();
    for (const unsigned bucket : buckets) {
        EXPECT_EQ(pool_.capacity_of(bucket), 0U) << "a block was lost";
    }
}

class IdleCheck : public ::testing::Test {
protected:
    void use_small_blocks() { PoolParts::deallocate(cache_, 4, PoolParts::allocate(cache_, 4)); }

    PoolParts pool_;
    testing::LooseCache cache_{pool_};
};

TEST_F(IdleCheck, CacheIsIdleUntilItsFirstCallAndAfterAPassWithoutCalls) {
    EXPECT_TRUE(was_idle(cache_));
    use_small_blocks();
    EXPECT_FALSE(was_idle(cache_));
    EXPECT_TRUE(was_idle(cache_));
}

// For a thread that keeps large blocks, only calls for large blocks count.
TEST_F(IdleCheck, ThreadThatUsesOnlySmallBlocksIsIdleForLargeOnes) {
    pages::Span* const span =
        pool_.large.allocate(std::size_t{1} << 20, 64, PoolParts::path()).span;
    ASSERT_NE(span, nullptr);
    if (!cache_.large.keep(*span, pool_.large)) GTEST_SKIP() << "no fences of all threads";
    (void)was_idle(cache_);
    use_small_blocks();
    EXPECT_TRUE(was_idle(cache_));
    cache_.counters->large.deallocations.fetch_add(1);
    EXPECT_FALSE(was_idle(cache_));
    cache_.give_back_all(PoolParts::path());
}

}  // namespace
}  // namespace tensorpool::blocks
