#include "replay/plan.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/wait_until.hpp"

namespace tensorpool::command::replay {
namespace {

TEST(Signal, WaitReturnsIfGivenBefore) {
    Signal signal;
    signal.give();
    std::atomic<unsigned> waits = 0;
    std::thread waiter([&] {
        for (int i = 0; i < 2; ++i) {
            signal.wait();
            ++waits;
        }
    });
    ASSERT_TRUE(
        tensorpool::testing::wait_until("both waits have returned", [&] { return waits == 2; }));
    waiter.join();
}

/// Some threads spin, some sleep, and some come late; all see what was written before the signal.
TEST(Signal, WakesAllWaitingThreads) {
    for (int round = 0; round < 300; ++round) {
        Signal signal;
        int written = 0;
        std::vector<std::thread> waiters;
        for (int i = 0; i < 4; ++i) {
            waiters.emplace_back([&] {
                signal.wait();
                EXPECT_EQ(written, round);
            });
        }
        if (round % 3 == 0) usleep(200);
        written = round;
        signal.give();
        for (std::thread& waiter : waiters) waiter.join();
    }
}

/// Threads in a ring wake each other in turn, so a lost wake-up would stop them all.
TEST(Signal, LosesNoWakeUp) {
    constexpr std::size_t threads = 4;
    constexpr std::size_t turns = 5000;
    std::vector<Signal> signals(threads * turns + 1);
    std::size_t reached = 0;  // handed from thread to thread by the signals
    std::atomic<std::size_t> ended = 0;
    std::vector<std::thread> ring;
    for (std::size_t i = 0; i < threads; ++i) {
        ring.emplace_back([&, i] {
            for (std::size_t turn = i; turn < threads * turns; turn += threads) {
                signals[turn].wait();
                EXPECT_EQ(reached++, turn);
                signals[turn + 1].give();
            }
            ++ended;
        });
    }
    signals[0].give();
    ASSERT_TRUE(tensorpool::testing::wait_until("the signals have gone around the ring",
                                                [&] { return ended == threads; }));
    for (std::thread& thread : ring) thread.join();
    signals[threads * turns].wait();
    EXPECT_EQ(reached, threads * turns);
}

}  // namespace
}  // namespace tensorpool::command::replay
