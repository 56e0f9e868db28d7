#include "serve/http/connection_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "support/process_metrics.hpp"
#include "support/wait_until.hpp"

namespace tensorpool::command::serve {
namespace {

TEST(ConnectionThreads, RejectsWorkWhenAllThreadsAreTaken) {
    std::promise<void> open;
    const std::shared_future<void> opened = open.get_future().share();
    std::atomic<int> done = 0;
    {
        ConnectionThreads threads(3);
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(threads.begin([&] {
                opened.wait();
                ++done;
            }));
        }
        EXPECT_FALSE(threads.begin([&] { ++done; }));
        open.set_value();
    }
    EXPECT_EQ(done, 3);
}

TEST(ConnectionThreads, TakesNewWorkWhenEarlierWorkIsDone) {
    ConnectionThreads threads(1);
    for (int i = 0; i < 100; ++i) {
        std::promise<void> done;
        ASSERT_TRUE(tensorpool::testing::wait_until(
            "the thread is free again", [&] { return threads.begin([&] { done.set_value(); }); }));
        done.get_future().wait();
    }
}

TEST(ConnectionThreads, EndsWithoutAnyWork) {
    const std::size_t before = tensorpool::testing::thread_count();
    {
        const ConnectionThreads threads(64);
        EXPECT_GE(tensorpool::testing::thread_count(), 64U);
    }
    // The system may list a thread for a moment after it was joined.
    tensorpool::testing::wait_until("the 64 threads have ended",
                                    [&] { return tensorpool::testing::thread_count() <= before; });
}

}  // namespace
}  // namespace tensorpool::command::serve
