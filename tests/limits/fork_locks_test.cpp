#include "statistics/scopes/counters_of_thread.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "limits/commit_budget.hpp"
#include "support/child_process.hpp"

namespace tensorpool::limits {
namespace {

using testing::holds_in_child;

constexpr std::size_t page = 4096;

bool budget_serves() {
    if (commit_budget().take(page, page, 1.0, page) != page) return false;
    commit_budget().give_back(page);
    return true;
}

/// Threads that hold a lock nearly all the time.
class BusyThreads {
public:
    template <class Function>
    explicit BusyThreads(Function function) {
        for (std::thread& thread : threads_) {
            thread = std::thread([this, function] {
                while (!done_) function();
            });
        }
    }
    ~BusyThreads() {
        done_ = true;
        for (std::thread& thread : threads_) thread.join();
    }

private:
    std::atomic<bool> done_ = false;
    std::array<std::thread, 2> threads_;
};

const bool called_in_static_constructor = statistics::watch_forks();

TEST(WatchForks, MayBeCalledInStaticConstructor) {
    EXPECT_TRUE(called_in_static_constructor);
}

TEST(WatchForks, RepeatedCallsTakeEachLockOnce) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([] { EXPECT_TRUE(statistics::watch_forks()); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(holds_in_child([] { return statistics::watch_forks() && budget_serves(); }));
    EXPECT_TRUE(budget_serves()) << "in the parent";
}

TEST(WatchForks, ChildMayForkAgain) {
    EXPECT_TRUE(holds_in_child([] { return holds_in_child(budget_serves) && budget_serves(); }));
}

TEST(WatchForks, ChildFindsBudgetUnlocked) {
    const std::size_t before = commit_budget().committed();
    {
        const BusyThreads threads(budget_serves);
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(holds_in_child(budget_serves));
    }
    EXPECT_EQ(commit_budget().committed(), before);
}

}  // namespace
}  // namespace tensorpool::limits
