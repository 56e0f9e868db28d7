#include "serve/http/connection_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

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
        while (!threads.begin([&] { done.set_value(); })) std::this_thread::yield();
        done.get_future().wait();
    }
}

TEST(ConnectionThreads, EndsWithoutAnyWork) {
    const ConnectionThreads threads(64);
}

}  // namespace
}  // namespace tensorpool::command::serve
