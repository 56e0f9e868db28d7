#include "rest/in_place/freezer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace tensorpool::stashing {
namespace {

TEST(HandlerLock, HandlerGetsTheLockFromThreadsThatTakeItAgainAndAgain) {
    HandlerLock lock;
    std::atomic<bool> ends = false;
    int shared = 0;
    std::thread other([&] {
        while (!ends) {
            const std::lock_guard guard(lock);
            ++shared;
        }
    });
    for (int i = 0; i != 1000; ++i) {
        lock.lock_as_handler();
        --shared;
        lock.unlock();
    }
    ends = true;
    other.join();
    EXPECT_GE(shared, -1000);
}

}  // namespace
}  // namespace tensorpool::stashing
