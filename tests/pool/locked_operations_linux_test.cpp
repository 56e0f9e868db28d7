// The number of locked operations of a call. One costs some nanoseconds on a cache line that only
// this processor writes, and many times that on a line that others write too. The numbers here are
// exact for hits and upper bounds for misses; perf/scale.cpp multiplies them by the cost of one.

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include "support/counted_call_linux.hpp"
#include "support/shared_words_linux.hpp"

namespace tensorpool {
namespace {

using testing::count_call;
using testing::CountedCall;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
/// Instructions of a call that a thread's magazine serves, and of counting them. No slow path has
/// so few.
constexpr unsigned max_of_hit = 64;

/// The maxima over the calls of one kind.
class MaxCounts {
public:
    void add(const CountedCall& call) {
        ++calls_;
        max_.locked = std::max(max_.locked, call.locked);
        max_.instructions = std::max(max_.instructions, call.instructions);
        max_.system_calls = std::max(max_.system_calls, call.system_calls);
    }
    unsigned locked() const { return max_.locked; }
    unsigned instructions() const { return max_.instructions; }
    unsigned calls() const { return calls_; }
    unsigned system_calls() const { return max_.system_calls; }

private:
    CountedCall max_;
    unsigned calls_ = 0;
};

/// Options with which no retention period ends while calls are counted.
PoolOptions options_for_counting() {
    return {.retain = {.milliseconds = 1'000'000'000}};
}

CountedCall count_allocation(MemoryPool& pool, std::size_t bytes, void*& block) {
    return count_call([&] { block = pool.allocate(bytes); });
}

CountedCall count_free(MemoryPool& pool, std::size_t bytes, void* block) {
    return count_call([&] { pool.deallocate(block, bytes); });
}

/// Counts pairs of calls of one size, after some warm-up pairs.
void count_pairs(MemoryPool& pool, std::size_t bytes, MaxCounts& allocations, MaxCounts& frees) {
    for (int i = 0; i < 3; ++i) pool.deallocate(pool.allocate(bytes), bytes);
    for (int i = 0; i < 10; ++i) {
        void* block = nullptr;
        allocations.add(count_allocation(pool, bytes, block));
        frees.add(count_free(pool, bytes, block));
    }
}

/// Keeps a second thread running, because the C library avoids locked operations in a process with
/// one thread.
class CountedCalls : public ::testing::Test {
protected:
    CountedCalls() : second_([this] { over_.wait(); }) {}
    ~CountedCalls() override {
        over_.count_down();
        second_.join();
    }
    void SetUp() override {
#ifndef __OPTIMIZE__
        GTEST_SKIP() << "without optimization each store to an atomic is an exchange";
#endif
    }

private:
    std::latch over_{1};
    std::thread second_;
};
class LockedOperations : public CountedCalls {};

TEST_F(CountedCalls, FindsTheWordsOfLockedOperations) {
    struct {
        std::atomic<std::uint64_t> first = 0;
        std::atomic<std::uint64_t> others[4] = {};
    } words;
    const auto word_of = [](auto call) { return count_call(call).words[0]; };
    const auto at = [](const auto& word) { return reinterpret_cast<std::uintptr_t>(&word); };
    volatile std::size_t index = 3;
    EXPECT_EQ(word_of([&] { words.first.fetch_add(index); }), at(words.first));
    EXPECT_EQ(word_of([&] { words.others[index].fetch_add(1); }), at(words.others[3]));
    EXPECT_EQ(word_of([&] { words.others[index].fetch_add(index); }), at(words.others[3]));
    EXPECT_EQ(word_of([&] { words.others[1].exchange(index); }), at(words.others[1]));
    static std::atomic<std::uint64_t> global = 0;
    EXPECT_EQ(word_of([&] { global.fetch_add(1); }), at(global));
    EXPECT_EQ(word_of([&] { global.fetch_add(1'000'000); }), at(global));
    EXPECT_EQ(word_of([&] { global.store(index); }), at(global));
}

TEST_F(CountedCalls, CountsExactlyTheLockedOperations) {
    std::atomic<unsigned> word = 0;
    std::mutex mutex;
    unsigned other = 0;
    const auto locked = [](auto call) {
        call();
        return count_call(call).locked;
    };
    EXPECT_EQ(locked([&] { word.fetch_add(1, std::memory_order_relaxed); }), 1U);
    EXPECT_EQ(locked([&] { other = word.exchange(7, std::memory_order_relaxed); }), 1U);
    EXPECT_EQ(locked([&] { word.compare_exchange_strong(other, 8); }), 1U);
    EXPECT_EQ(locked([&] { word.store(9); }), 1U);
    EXPECT_EQ(locked([&] { const std::lock_guard guard(mutex); }), 2U);
    EXPECT_EQ(locked([&] { word.store(word.load() + 1, std::memory_order_release); }), 0U);
    EXPECT_EQ(locked([&] { other = word.load(); }), 0U);
}

TEST_F(LockedOperations, SmallHitTakesNone) {
    MemoryPool pool(options_for_counting());
    for (std::size_t bytes = 64; bytes <= 64 * kib; bytes *= 2) {
        MaxCounts allocations;
        MaxCounts frees;
        count_pairs(pool, bytes, allocations, frees);
        EXPECT_EQ(allocations.locked(), 0U) << bytes;
        EXPECT_EQ(frees.locked(), 0U) << bytes;
        // More than tests/fast_path counts: this file is compiled with fewer optimizations.
        EXPECT_LE(allocations.instructions(), max_of_hit) << bytes;
        EXPECT_LE(frees.instructions(), max_of_hit) << bytes;
        EXPECT_EQ(allocations.system_calls() + frees.system_calls(), 0U) << bytes;
    }
}

TEST_F(LockedOperations, SmallMissServedByTheDepotTakesFew) {
    MemoryPool pool(options_for_counting());
    for (const std::size_t bytes : {std::size_t{64}, 4 * kib, 64 * kib}) {
        std::vector<void*> blocks(std::min<std::size_t>(8 * mib / bytes, 1000));
        const auto exchange_all = [&] {
            for (void*& block : blocks) block = pool.allocate(bytes);
            for (void* const block : blocks) pool.deallocate(block, bytes);
        };
        for (int i = 0; i < 3; ++i) exchange_all();
        const auto bucket = [&] { return pool.statistics().buckets[detail::bucket_of(bytes)]; };
        MaxCounts hits;
        MaxCounts depot_hits;
        MaxCounts frees;
        for (void*& block : blocks) {
            const BucketStatistics before = bucket();
            const CountedCall call = count_allocation(pool, bytes, block);
            const BucketStatistics after = bucket();
            if (after.cache_misses == before.cache_misses) hits.add(call);
            if (after.depot_hits != before.depot_hits) depot_hits.add(call);
        }
        for (void* const block : blocks) frees.add(count_free(pool, bytes, block));
        EXPECT_EQ(hits.locked(), 0U) << bytes;
        EXPECT_GT(depot_hits.calls(), 0U) << bytes;
        EXPECT_LE(depot_hits.locked(), 7U) << bytes;
        EXPECT_LE(frees.locked(), 7U) << bytes;
        EXPECT_EQ(hits.system_calls() + depot_hits.system_calls() + frees.system_calls(), 0U)
            << bytes;
    }
}

TEST_F(LockedOperations, LargeHitTakesNone) {
    for (const Checks checks : {Checks::off, Checks::full}) {
        for (const std::size_t bytes : {65 * kib, 128 * kib, mib, 8 * mib}) {
            PoolOptions options = options_for_counting();
            options.checks = checks;
            MemoryPool pool(options);
            MaxCounts allocations;
            MaxCounts frees;
            count_pairs(pool, bytes, allocations, frees);
            EXPECT_EQ(allocations.locked(), 0U) << bytes;
            // With checks, a free ends the use of the block with an exchange.
            EXPECT_EQ(frees.locked(), checks == Checks::off ? 0U : 1U) << bytes;
            EXPECT_EQ(allocations.system_calls() + frees.system_calls(), 0U) << bytes;
        }
    }
}

TEST_F(LockedOperations, LargeHitOfAnotherSizeThanTheLastTakesNone) {
    MemoryPool pool(options_for_counting());
    const std::size_t sizes[] = {128 * kib, 256 * kib, 512 * kib};
    MaxCounts allocations;
    MaxCounts frees;
    void* blocks[3];
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 3; ++i) {
            const CountedCall call = count_allocation(pool, sizes[i], blocks[i]);
            if (round != 0) allocations.add(call);
        }
        for (int i = 0; i < 3; ++i) {
            const CountedCall call = count_free(pool, sizes[i], blocks[i]);
            if (round != 0) frees.add(call);
        }
    }
    EXPECT_EQ(allocations.locked(), 0U);
    EXPECT_EQ(frees.locked(), 0U);
    EXPECT_EQ(allocations.system_calls() + frees.system_calls(), 0U);
}

TEST_F(LockedOperations, LargeHitUnderLimitedRetentionTakesOnePerCall) {
    PoolOptions options = options_for_counting();
    options.retain.bytes = 64 * mib;
    MemoryPool pool(options);
    MaxCounts allocations;
    MaxCounts frees;
    count_pairs(pool, mib, allocations, frees);
    EXPECT_EQ(allocations.locked(), 1U);
    EXPECT_EQ(frees.locked(), 1U);
    EXPECT_EQ(allocations.system_calls() + frees.system_calls(), 0U);
}

TEST_F(LockedOperations, LargeMissServedByTheSharedCacheTakesFew) {
    MemoryPool pool(options_for_counting());
    MaxCounts allocations;
    MaxCounts frees;
    count_pairs(pool, 16 * mib, allocations, frees);
    EXPECT_LE(allocations.locked(), 3U);
    EXPECT_LE(frees.locked(), 3U);
    EXPECT_EQ(allocations.system_calls() + frees.system_calls(), 0U);
}

TEST_F(LockedOperations, LargeMissServedByAFreeExtentTakesFew) {
    MemoryPool pool(options_for_counting());
    pool.reserve(64 * mib);
    MaxCounts allocations;
    std::vector<void*> blocks(20);
    for (void*& block : blocks) {
        const CountedCall call = count_allocation(pool, mib, block);
        if (&block != &blocks.front()) allocations.add(call);
    }
    EXPECT_LE(allocations.locked(), 7U);
    EXPECT_EQ(allocations.system_calls(), 0U);
    for (void* const block : blocks) pool.deallocate(block, mib);
}

TEST_F(LockedOperations, CheckForTheEndOfAPeriodTakesNone) {
    MemoryPool pool(options_for_counting());
    MaxCounts frees;
    for (int i = 0; i < 3; ++i) pool.deallocate(pool.allocate(mib), mib);
    for (int i = 0; i < 128; ++i) frees.add(count_free(pool, mib, pool.allocate(mib)));
    EXPECT_EQ(frees.locked(), 0U) << "every 64th free checks whether a period has ended";
    EXPECT_EQ(frees.system_calls(), 0U);
}

TEST_F(LockedOperations, FreeOnAnotherThreadIntoItsMagazineTakesNone) {
    MemoryPool pool(options_for_counting());
    for (const std::size_t bytes : {kib, mib}) {
        MaxCounts frees;
        std::vector<void*> blocks(4);
        for (void*& block : blocks) block = pool.allocate(bytes);
        std::thread([&] {
            void* own[6];
            for (void*& block : own) block = pool.allocate(bytes);
            for (void* const block : own) pool.deallocate(block, bytes);
            for (void*& block : own) block = pool.allocate(bytes);
            for (void* const block : blocks) frees.add(count_free(pool, bytes, block));
            for (void* const block : own) pool.deallocate(block, bytes);
        }).join();
        EXPECT_EQ(frees.locked(), 0U) << bytes;
        EXPECT_EQ(frees.system_calls(), 0U) << bytes;
        if (bytes == kib) {
            EXPECT_LE(frees.instructions(), max_of_hit);
        }
    }
}

TEST_F(LockedOperations, ScopeOfABudgetCostsTheSameHoweverManyPoolsTheThreadUses) {
    Budget budget("request");
    std::vector<std::unique_ptr<MemoryPool>> pools;
    const auto use_another = [&] {
        pools.push_back(std::make_unique<MemoryPool>(options_for_counting()));
        pools.back()->deallocate(pools.back()->allocate(kib), kib);
    };
    const auto scope_with_pair = [&] {
        const BudgetScope scope(budget);
        pools.front()->deallocate(pools.front()->allocate(kib), kib);
    };
    const auto count = [&] {
        for (int i = 0; i < 3; ++i) scope_with_pair();
        return count_call(scope_with_pair);
    };
    use_another();
    const CountedCall with_one = count();
    while (pools.size() != 300) use_another();
    const CountedCall with_many = count();
    EXPECT_EQ(with_many.locked, with_one.locked);
    EXPECT_EQ(with_many.instructions, with_one.instructions);
    EXPECT_EQ(with_many.system_calls, 0U);
}

TEST_F(LockedOperations, PairBesideAChargedBlockTakesNone) {
    MemoryPool pool(options_for_counting());
    Budget budget("request");
    void* charged = nullptr;
    {
        const BudgetScope scope(budget);
        charged = pool.allocate(kib);
    }
    MaxCounts allocations;
    MaxCounts frees;
    count_pairs(pool, kib, allocations, frees);
    EXPECT_EQ(allocations.locked() + frees.locked(), 0U);
    EXPECT_LE(allocations.instructions(), max_of_hit);
    EXPECT_LE(frees.instructions(), max_of_hit);
    pool.deallocate(charged, kib);
}

// Shards ---------------------------------------------------------------------------------------

class LockedOperationsOfShards : public LockedOperations {
protected:
    using Calls = testing::SharedWords::Calls;
    /// Returns the locked operations of a call on lines that a thread of another shard also locks.
    /// Expects at most `max_locked` on all lines together.
    static unsigned shared(unsigned shards, std::size_t bytes, std::size_t blocks, Calls which,
                           unsigned max_locked) {
        const testing::SharedWords words(shards, bytes, blocks, which);
        EXPECT_LE(words.max_locked(), max_locked) << shards << " shards, " << bytes << " B";
        return words.usually_shared();
    }
};

TEST_F(LockedOperationsOfShards, ExchangesWithTheDepotShareNoWord) {
    EXPECT_GT(shared(1, kib, 1000, Calls::allocations, 7), 0U);
    EXPECT_EQ(shared(2, kib, 1000, Calls::allocations, 7), 0U);
    EXPECT_EQ(shared(2, kib, 1000, Calls::frees, 7), 0U);
}

// What is left are the pool's totals and the cache of large blocks, which all threads share.
TEST_F(LockedOperationsOfShards, LargeMissesShareFewWords) {
    EXPECT_GT(shared(1, mib, 40, Calls::allocations, 10), 4U);
    EXPECT_LE(shared(2, mib, 40, Calls::allocations, 10), 4U);
    EXPECT_LE(shared(2, mib, 40, Calls::frees, 10), 4U);
}

}  // namespace
}  // namespace tensorpool

#endif
