#include "replay/signal.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tensorpool::command::replay {
namespace {

TEST(Signal, WaitReturnsIfGivenBefore) {
    Signal signal;
    signal.give();
    signal.wait();
    signal.wait();
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

/// Threads in a ring wake each other in turn, so a lost wake-up would hang the test.
TEST(Signal, LosesNoWakeUp) {
    constexpr std::size_t threads = 4;
    constexpr std::size_t turns = 5000;
    std::vector<Signal> signals(threads * turns + 1);
    std::vector<std::thread> ring;
    for (std::size_t i = 0; i < threads; ++i) {
        ring.emplace_back([&, i] {
            for (std::size_t turn = i; turn < threads * turns; turn += threads) {
                signals[turn].wait();
                signals[turn + 1].give();
            }
        });
    }
    signals[0].give();
    for (std::thread& thread : ring) thread.join();
    signals[threads * turns].wait();
}

}  // namespace
}  // namespace tensorpool::command::replay
