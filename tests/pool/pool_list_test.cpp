
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <tensorpool/memory_pool.hpp>

#include "pool/fill.hpp"
#include "pool/pool.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

std::string names() {
    std::string text;
    detail::pool_list().visit([&](detail::Pool& pool) { text += pool.parts().options.name + ' '; });
    return text;
}

TEST(PoolList, VisitsAllPools) {
    MemoryPool first(PoolOptions{.name = "first"});
    {
        MemoryPool second(PoolOptions{.name = "second"});
        MemoryPool third(PoolOptions{.name = "third"});
        EXPECT_EQ(names(), "third second first ");
    }
    EXPECT_EQ(names(), "first ");
}

TEST(PoolList, LeaveWaitsForVisits) {
    auto pool = std::make_unique<MemoryPool>(PoolOptions{.name = "short-lived"});
    std::atomic<bool> is_gone = false;
    std::thread thread;
    detail::pool_list().visit([&](detail::Pool& visited) {
        std::latch begun(1);
        thread = std::thread([&] {
            begun.count_down();
            pool.reset();
            is_gone = true;
        });
        begun.wait();
        for (int i = 0; i < 1000; ++i) {
            EXPECT_EQ(visited.parts().options.name, "short-lived");
            EXPECT_FALSE(is_gone);
            std::this_thread::yield();
        }
    });
    thread.join();
    EXPECT_EQ(names(), "");
}

TEST(PoolList, VisitMayUseAndMakePools) {
    MemoryPool pool(PoolOptions{.name = "first"});
    detail::pool_list().visit([&](detail::Pool&) {
        testing::use(pool);
        MemoryPool another;
        testing::use(another);
    });
    EXPECT_EQ(names(), "first ");
}

TEST(PoolList, LeaveDoesNotWaitForVisitsOfItsOwnThread) {
    auto pool = std::make_unique<MemoryPool>(PoolOptions{.name = "left"});
    detail::Pool* visited = nullptr;
    detail::pool_list().visit([&](detail::Pool& one) {
        visited = &one;
        detail::pool_list().leave(one);  // like exit() in a callback, except that it returns
        EXPECT_EQ(names(), "");
    });
    detail::pool_list().enter(*visited);
    EXPECT_EQ(names(), "left ");
}

TEST(PoolList, PoolVisitedDuringAForkStaysInTheChild) {
    auto pool = std::make_unique<MemoryPool>(PoolOptions{.name = "forked"});
    const auto visits = [](detail::Pool& visited) {
        const std::lock_guard guard(detail::pool_list());
        return visited.visits;
    };
    int code = -1;
    detail::pool_list().visit([&](detail::Pool& visited) {
        code = testing::exit_code_of_child([&] { return static_cast<int>(visits(visited)); });
    });
    EXPECT_EQ(code, 1);
    bool is_child = false;
    detail::pool_list().visit([&](detail::Pool& visited) {
        const pid_t child = fork();
        is_child = child == 0;
        if (is_child) return;
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(visits(visited), 1U);
    });
    if (is_child) {
        detail::pool_list().visit([&](detail::Pool& visited) {
            if (visits(visited) != 1) _exit(1);
        });
        pool.reset();  // returns, because no visit is in progress
        _exit(0);
    }
}

}  // namespace
}  // namespace tensorpool
