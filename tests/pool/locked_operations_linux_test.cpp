// The number of locked operations of a call. One costs some nanoseconds on a cache line that only
// this processor writes, and many times that on a line that others write too. The numbers here are
// exact for hits and upper bounds for misses; perf/scale.cpp multiplies them by the cost of one.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <latch>
#include <mutex>
#include <string>
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

/// The maxima over the calls of one kind.
class MaxCounts {
public:
    explicit MaxCounts(std::string what) : what_(std::move(what)) {}
    ~MaxCounts() {
        std::printf("  %-50s %3u locked, %5u instructions, %u system calls, of %u calls\n",
                    what_.c_str(), max_.locked, max_.instructions, max_.system_calls, calls_);
    }
    MaxCounts(const MaxCounts&) = delete;
    MaxCounts& operator=(const MaxCounts&) = delete;

    void add(const CountedCall& call) {
        ++calls_;
        if (call.locked != 0) ++calls_with_any_;
        max_.locked = std::max(max_.locked, call.locked);
        max_.instructions = std::max(max_.instructions, call.instructions);
        max_.system_calls = std::max(max_.system_calls, call.system_calls);
    }
    unsigned locked() const { return max_.locked; }
    unsigned calls() const { return calls_; }
    unsigned calls_with_any() const { return calls_with_any_; }
    unsigned system_calls() const { return max_.system_calls; }

private:
    std::string what_;
    CountedCall max_;
    unsigned calls_ = 0;
    unsigned calls_with_any_ = 0;
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
        MaxCounts allocations("allocation of " + std::to_string(bytes) + " B, hit");
        MaxCounts frees("free of " + std::to_string(bytes) + " B, hit");
        count_pairs(pool, bytes, allocations, frees);
        EXPECT_EQ(allocations.locked(), 0U) << bytes;
        EXPECT_EQ(frees.locked(), 0U) << bytes;
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
        MaxCounts hits("allocation of " + std::to_string(bytes) + " B, magazines");
        MaxCounts depot_hits("allocation of " + std::to_string(bytes) + " B, depot");
        MaxCounts frees("free of " + std::to_string(bytes) + " B");
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
        EXPECT_EQ(depot_hits.system_calls(), 0U) << bytes;
    }
}

TEST_F(LockedOperations, LargeHitTakesNone) {
    for (const Checks checks : {Checks::off, Checks::full}) {
        for (const std::size_t bytes : {65 * kib, 128 * kib, mib, 8 * mib}) {
            PoolOptions options = options_for_counting();
            options.checks = checks;
            MemoryPool pool(options);
            MaxCounts allocations("allocation of " + std::to_string(bytes / kib) + " KiB, hit");
            MaxCounts frees("free of " + std::to_string(bytes / kib) + " KiB, hit");
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
    MaxCounts allocations("allocation of large blocks of sizes in turn, hit");
    MaxCounts frees("free of large blocks of sizes in turn, hit");
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
}

TEST_F(LockedOperations, LargeHitUnderLimitedRetentionTakesOnePerCall) {
    PoolOptions options = options_for_counting();
    options.retain.bytes = 64 * mib;
    MemoryPool pool(options);
    MaxCounts allocations("allocation of 1 MiB with a limit of retention, hit");
    MaxCounts frees("free of 1 MiB with a limit of retention, hit");
    count_pairs(pool, mib, allocations, frees);
    EXPECT_EQ(allocations.locked(), 1U);
    EXPECT_EQ(frees.locked(), 1U);
}

TEST_F(LockedOperations, LargeMissServedByTheSharedCacheTakesFew) {
    MemoryPool pool(options_for_counting());
    MaxCounts allocations("allocation of 16 MiB, cache of all threads");
    MaxCounts frees("free of 16 MiB, cache of all threads");
    count_pairs(pool, 16 * mib, allocations, frees);
    EXPECT_LE(allocations.locked(), 3U);
    EXPECT_LE(frees.locked(), 3U);
    EXPECT_EQ(allocations.system_calls() + frees.system_calls(), 0U);
}

TEST_F(LockedOperations, LargeMissServedByAFreeExtentTakesFew) {
    MemoryPool pool(options_for_counting());
    pool.reserve(64 * mib);
    MaxCounts allocations("allocation of 1 MiB, free extent");
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
    MaxCounts frees("free of 1 MiB, hit, 128 in a row");
    for (int i = 0; i < 3; ++i) pool.deallocate(pool.allocate(mib), mib);
    for (int i = 0; i < 128; ++i) frees.add(count_free(pool, mib, pool.allocate(mib)));
    EXPECT_EQ(frees.locked(), 0U) << "every 64th free checks whether a period has ended";
}

TEST_F(LockedOperations, FreeOnAnotherThreadIntoItsMagazineTakesNone) {
    MemoryPool pool(options_for_counting());
    for (const std::size_t bytes : {kib, mib}) {
        MaxCounts frees("free of " + std::to_string(bytes) + " B of another thread's, hit");
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
    }
}

// Shards ---------------------------------------------------------------------------------------

class LockedOperationsOfShards : public LockedOperations {
protected:
    using Calls = testing::SharedWords::Calls;
    /// Returns the locked operations of a call on lines that a thread of another shard also locks.
    static unsigned shared(const char* what, unsigned shards, std::size_t bytes, std::size_t blocks,
                           Calls which) {
        const testing::SharedWords words(shards, bytes, blocks, which);
        std::printf("  %-50s %3u locked, %u of them on lines of both threads\n", what,
                    words.max_locked(), words.usually_shared());
        return words.usually_shared();
    }
};

TEST_F(LockedOperationsOfShards, ExchangesWithTheDepotShareNoWord) {
    EXPECT_GT(shared("1 KiB, through the depot, one shard", 1, kib, 1000, Calls::allocations), 0U);
    EXPECT_EQ(shared("1 KiB, through the depot", 2, kib, 1000, Calls::allocations), 0U);
    EXPECT_EQ(shared("1 KiB, freed through the depot", 2, kib, 1000, Calls::frees), 0U);
}

// What is left are the pool's totals and the cache of large blocks, which all threads share.
TEST_F(LockedOperationsOfShards, LargeMissesShareFewWords) {
    EXPECT_GT(shared("1 MiB, from the heap, one shard", 1, mib, 40, Calls::allocations), 4U);
    EXPECT_LE(shared("1 MiB, from the heap", 2, mib, 40, Calls::allocations), 4U);
    EXPECT_LE(shared("1 MiB, freed", 2, mib, 40, Calls::frees), 4U);
}

}  // namespace
}  // namespace tensorpool

#endif
