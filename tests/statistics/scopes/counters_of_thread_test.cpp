#include "statistics/scopes/counters_of_thread.hpp"

#include <gtest/gtest.h>

#include <tensorpool/detail/arena_words.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "statistics/fake_counters.hpp"
#include "support/child_process.hpp"
#include "support/wait_until.hpp"

namespace tensorpool::statistics {
namespace {

using testing::FakeCounters;
using testing::holds_in_child;

/// Returns what the calling thread has counted so far, up to a constant.
ThreadSums sums() {
    CountersOfThread& own = *CountersOfThread::own();
    const std::lock_guard guard(own.mutex);
    return own.sums();
}

/// Returns what the calling thread has counted since `before`.
ThreadSums counted_since(const ThreadSums& before) {
    ThreadSums sums = statistics::sums();
    sums.subtract(before);
    return sums;
}

TEST(CountersOfThread, SumsAllCountersOfThread) {
    FakeCounters one, other;
    const ThreadSums before = sums();
    one.allocate(0, 3);
    other.allocate(0, 2);
    other.allocate_large(1 << 20);
    other.free(2);
    const ThreadSums counted = counted_since(before);
    EXPECT_EQ(counted.allocations[0], 5U);
    EXPECT_EQ(counted.deallocations[2], 1U);
    EXPECT_EQ(counted.allocation_count(), 6U);
    EXPECT_EQ(counted.deallocation_count(), 1U);
    EXPECT_EQ(counted.requested_bytes, 5U * 63 + (1 << 20) - 1);
    EXPECT_EQ(counted.allocated_bytes(), 5U * 64 + (1 << 20));
    EXPECT_EQ(counted.deallocated_bytes(), 256U);
}

TEST(CountersOfThread, ReusedCountersExcludePreviousThread) {
    FakeCounters counters;
    counters.allocate(1, 100);
    counters.end();
    std::thread([&] {
        const ThreadSums before = sums();
        counters.begin();
        EXPECT_EQ(counted_since(before).allocation_count(), 0U);
        counters.allocate(1, 7);
        EXPECT_EQ(counted_since(before).allocation_count(), 7U);
        counters.end();
        EXPECT_EQ(counted_since(before).allocation_count(), 7U);
    }).join();
}

TEST(CountersOfThread, SumIsKeptWhenCountersAreReturned) {
    const ThreadSums before = sums();
    for (int i = 0; i < 3; ++i) {
        FakeCounters counters;
        counters.allocate(3);
    }
    EXPECT_EQ(counted_since(before).allocations[3], 3U);
}

TEST(CountersOfThread, CountersMayEndInAnyOrder) {
    const ThreadSums before = sums();
    std::vector<std::unique_ptr<FakeCounters>> all;
    for (int i = 0; i < 5; ++i) all.push_back(std::make_unique<FakeCounters>());
    for (const int i : {2, 4, 0, 3, 1}) {
        for (const auto& counters : all) {
            if (counters != nullptr) counters->allocate(0);
        }
        all[static_cast<std::size_t>(i)].reset();
    }
    EXPECT_EQ(counted_since(before).allocations[0], 5U + 4 + 3 + 2 + 1);
}

TEST(CountersOfThread, CountersMayEndOnAnotherThread) {
    std::optional<FakeCounters> counters(std::in_place);
    const ThreadSums before = sums();
    counters->allocate(0, 4);
    std::thread([&] { counters.reset(); }).join();
    EXPECT_EQ(counted_since(before).allocations[0], 4U);
}

TEST(CountersOfThread, CountersMayOutliveTheirThread) {
    FakeCounters counters;
    counters.end();
    std::thread([&] { counters.begin(); }).join();
    EXPECT_EQ(counters.of_thread.owner.load(), nullptr);
    counters.end();
    counters.end();
    const ThreadSums before = sums();
    counters.begin();
    counters.allocate(0);
    EXPECT_EQ(counted_since(before).allocations[0], 1U);
}

TEST(CountersOfThread, CountersMayEndDuringThreadExit) {
    FakeCounters counters;
    CountersOfThread& own = *CountersOfThread::own();
    const ThreadSums before = sums();
    counters.allocate(0);
    std::atomic<bool> about_to_end = false;
    std::thread other;
    {
        const std::lock_guard guard(own.mutex);
        other = std::thread([&] {
            about_to_end = true;
            counters.end();
        });
        testing::wait_until("the other thread is about to end its counters", about_to_end);
        // If the other thread does not wait for the mutex yet, the test checks nothing but does not
        // fail.
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        own.leave();
    }
    other.join();
    EXPECT_EQ(counted_since(before).allocations[0], 0U);
}

TEST(CountersOfThread, RecordOfEndedThreadIsReused) {
    const CountersOfThread* first = nullptr;
    const CountersOfThread* second = nullptr;
    std::thread([&] { first = CountersOfThread::own(); }).join();
    std::thread([&] { second = CountersOfThread::own(); }).join();
    EXPECT_NE(first, nullptr);
    EXPECT_EQ(first, second);
}

TEST(CountersOfThread, SharedCountersCountOnlyInsideScope) {
    const ThreadSums before = sums();
    count_shared_allocation(0, 64, 60);
    EXPECT_EQ(counted_since(before).allocation_count(), 0U);
}

TEST(CountersOfThread, ThreadAndCountersMayEndConcurrently) {
    for (int round = 0; round < 200; ++round) {
        FakeCounters counters;
        counters.end();
        const ThreadSums before = sums();
        std::atomic<bool> begun = false;
        std::thread thread([&] {
            counters.begin();
            counters.allocate(0);
            begun = true;
        });
        testing::wait_until("the other thread has begun its counters", begun);
        counters.end();  // as when a pool is destroyed
        thread.join();
        EXPECT_EQ(counters.of_thread.owner, nullptr) << "in no thread's list";
        EXPECT_EQ(counted_since(before).allocation_count(), 0U) << "counted by the other thread";
    }
}

TEST(CountersOfThread, CountersMayEndDuringSum) {
    constexpr int rounds = 300;
    std::vector<FakeCounters> all(rounds);
    for (FakeCounters& counters : all) counters.end();
    std::atomic<int> begun = 0, ended = 0;
    std::thread thread([&] {
        const ThreadSums before = sums();
        for (FakeCounters& counters : all) {
            counters.begin();
            counters.allocate(0);
            ++begun;
            EXPECT_EQ(counted_since(before).allocations[0], static_cast<unsigned>(begun));
        }
        while (ended != rounds) (void)sums();
        EXPECT_EQ(counted_since(before).allocations[0], unsigned{rounds});
    });
    while (ended != rounds) {
        if (ended != begun) all[static_cast<std::size_t>(ended++)].end();
    }
    thread.join();
}

TEST(CountersOfThread, ForkedChildKeepsOnlyForkingThread) {
    FakeCounters own;
    FakeCounters of_other;
    of_other.end();
    std::atomic<bool> begun = false, done = false;
    std::thread other([&] {
        of_other.begin();
        begun = true;
        testing::wait_until("the child has ended", done);
    });
    testing::wait_until("the other thread has begun its counters", begun);
    EXPECT_TRUE(holds_in_child([&] {
        const ThreadSums before = sums();
        own.allocate(0);
        of_other.end();
        of_other.begin();
        of_other.allocate(0);
        return counted_since(before).allocations[0] == 2;
    }));
    EXPECT_NE(of_other.of_thread.owner.load(), nullptr) << "in the parent";
    done = true;
    other.join();
}

TEST(CountersOfThread, ForkedChildFindsLocksFree) {
    std::atomic<bool> done = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
            while (!done) {
                FakeCounters counters;
                (void)sums();
            }
        });
    }
    for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(holds_in_child([] {
            FakeCounters counters;
            const ThreadSums before = sums();
            counters.allocate(0);
            return counted_since(before).allocations[0] == 1;
        }));
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
}

TEST(ThreadNumber, IsUniqueAmongLivingThreadsAndReused) {
    const auto number_of_new_thread = [] {
        std::size_t number = 0;
        std::thread([&] {
            detail::ArenaWords words = {};
            detail::count_allocation(words);
            number = detail::thread_number;
            EXPECT_EQ(words.allocations[number], 1U);
        }).join();
        return number;
    };
    detail::ArenaWords words = {};
    detail::count_allocation(words);
    const std::size_t own = detail::thread_number;
    EXPECT_GT(own, 0U);
    EXPECT_EQ(own, CountersOfThread::own()->number);
    const std::size_t first = number_of_new_thread();
    EXPECT_NE(first, own);
    EXPECT_EQ(number_of_new_thread(), first);
}

TEST(CountAllocation, SharesAWordBeyondTheThreadsThatHaveOne) {
    detail::ArenaWords words = {};
    const std::size_t own = std::exchange(detail::thread_number, SIZE_MAX);
    CountersOfThread& record = *CountersOfThread::own();
    const std::size_t number =
        std::exchange(record.number, detail::ArenaWords::counting_threads + 1);
    detail::count_allocation(words);
    EXPECT_EQ(words.allocations[0], 1U);
    record.number = number;
    detail::thread_number = own;
}

}  // namespace
}  // namespace tensorpool::statistics
