#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "rest/in_place/freezer.hpp"
#include "support/child_process.hpp"
#include "support/waits_for_lock_linux.hpp"

namespace tensorpool::stashing {
namespace {

TEST(HandlerLock, HandlerThatIsForgottenIsNotWaitedFor) {
    if (!testing::can_see_waits()) GTEST_SKIP() << "/proc does not show what threads wait for";
    const std::string waiting = std::to_string(SYS_futex) + ' ';
    HandlerLock lock;
    lock.lock();
    std::atomic<pid_t> number = 0;
    std::thread handler([&] {
        number = gettid();
        lock.lock_as_handler();
        lock.unlock();
    });
    testing::wait_until("the handler waits for the lock", [&] {
        return number != 0 && testing::system_call_of(number).starts_with(waiting);
    });
    EXPECT_TRUE(testing::holds_in_child([&] {  // which has no handler
        alarm(testing::max_wait.count());
        lock.forget_handler();
        lock.unlock();
        lock.lock();
        lock.unlock();
        return true;
    }));
    lock.unlock();
    handler.join();
}

}  // namespace
}  // namespace tensorpool::stashing
