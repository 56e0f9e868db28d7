#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>

#include "limits/charged.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

int exit_status_of_child(int child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

TEST(BudgetScopeFork, ChildContinuesInTheScope) {
    MemoryPool pool;
    Budget budget("request", {.hard = mib});
    std::atomic<bool> is_inside = false;
    std::atomic<bool> may_end = false;
    std::thread other([&] {
        const BudgetScope scope(budget);
        void* const block = pool.allocate(1000);
        is_inside = true;
        testing::wait_until("the child has ended", may_end);
        pool.deallocate(block, 1000);
    });
    testing::wait_until("the other thread is inside its scope", is_inside);
    {
        const BudgetScope scope(budget);
        void* const block = pool.allocate(5000);
        const int child = fork();
        if (child == 0) {
            pool.deallocate(block, 5000);
            void* const own = pool.allocate(2000);
            const bool is_right =
                own != nullptr && budget.in_use() >= 2000 && pool.try_allocate(2 * mib) == nullptr;
            pool.deallocate(own, 2000);
            _exit(is_right ? 0 : 1);
        }
        EXPECT_EQ(exit_status_of_child(child), 0);
        pool.deallocate(block, 5000);
    }
    may_end = true;
    other.join();
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(BudgetScopeFork, ChildOfAThreadThatAsksAHolderMayAskIt) {
    class Slow : public MemoryHolder {
    public:
        std::size_t available() const noexcept override { return 100; }
        std::size_t give(std::size_t) noexcept override {
            is_inside = true;
            testing::wait_until("the child has ended", may_leave);
            return 0;
        }
        std::atomic<bool> is_inside = false;
        std::atomic<bool> may_leave = false;
    } holder;
    Budget budget("request", {.hard = 100});
    const testing::Charged reserved(budget, 100);
    const HolderRegistration registration = budget.add_holder(holder);
    std::thread asker([&] { EXPECT_EQ(budget.reclaim(10), 0U); });
    testing::wait_until("the holder is asked", holder.is_inside);
    const int child = fork();
    if (child == 0) {
        holder.may_leave = true;
        _exit(budget.reclaim(10) == 0 ? 0 : 1);
    }
    EXPECT_EQ(exit_status_of_child(child), 0) << "the thread that asked does not exist there";
    holder.may_leave = true;
    asker.join();
}

}  // namespace
}  // namespace tensorpool
