#include "base/atomics.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tensorpool::base {
namespace {

TEST(RaiseTo, RaisesAndNeverLowers) {
    std::atomic<std::uint64_t> highest = 5;
    raise_to(highest, 7);
    EXPECT_EQ(highest, 7U);
    raise_to(highest, 6);
    EXPECT_EQ(highest, 7U);
    raise_to(highest, 7);
    EXPECT_EQ(highest, 7U);
}

TEST(RaiseTo, KeepsHighestValueOfManyThreads) {
    constexpr unsigned threads = 4;
    constexpr std::uint64_t values = 20'000;
    std::atomic<std::uint64_t> highest = 0;
    std::vector<std::thread> workers;
    for (unsigned thread = 0; thread < threads; ++thread) {
        workers.emplace_back([&highest, thread] {
            for (std::uint64_t value = thread; value < values; value += threads) {
                raise_to(highest, value);
                // Whatever other threads do, the value is never below what this thread raised it
                // to.
                if (highest.load() < value) ADD_FAILURE() << "lowered below " << value;
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(highest, values - 1);
}

}  // namespace
}  // namespace tensorpool::base
