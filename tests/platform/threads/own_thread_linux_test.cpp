#include "platform/threads/own_thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>

#include "support/own_threads_linux.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool::platform {
namespace {

std::atomic<std::uint32_t> word = 0;
std::atomic<bool> is_over = false;
std::atomic<int> niceness = 0;
std::atomic<bool> blocks_signals = false;

void wait_for_end() {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    blocks_signals = sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGINT) == 1 &&
                     sigismember(&blocked, SIGALRM) == 1 && sigismember(&blocked, SIGPROF) == 1;
    niceness = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
    for (;;) {
        const std::uint32_t seen = word.load(std::memory_order_acquire);
        if (is_over) return;
        wait_on(word, seen, no_timeout);
    }
}

TEST(OwnThread, HasNameLowestPriorityAndBlockedSignals) {
    is_over = false;
    const OwnThread thread = start_own_thread("own-thread", wait_for_end);
    ASSERT_TRUE(thread);
    const auto found = testing::threads_named("own-thread");
    is_over = true;
    wake_waiter(word);
    join_own_thread(thread);
    EXPECT_EQ(found.size(), 1U);
    EXPECT_TRUE(blocks_signals);
    EXPECT_EQ(niceness, 19);
    EXPECT_TRUE(testing::threads_named("own-thread").empty());
}

TEST(OwnThread, KeepsPriorityOfStarterIfRequested) {
    is_over = true;
    const int own = getpriority(PRIO_PROCESS, 0);
    join_own_thread(start_own_thread("own-thread", wait_for_end, Priority::same));
    EXPECT_EQ(niceness, own);
}

TEST(OwnThread, PreservesSignalMaskOfStarter) {
    sigset_t before;
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    is_over = true;
    join_own_thread(start_own_thread("own-thread", wait_for_end));
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int signal = 1; signal < 32; ++signal) {
        EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
    }
}

TEST(WaitOn, ReturnsAtOnceIfWordChanged) {
    const std::uint32_t seen = word.load();
    wake_waiter(word);
    wait_on(word, seen, no_timeout);  // would sleep forever otherwise
    EXPECT_NE(word.load(), seen);
}

TEST(WaitOn, ReturnsAfterTimeout) {
    const std::uint32_t seen = word.load();
    wait_on(word, seen, 1);  // would sleep forever otherwise
    EXPECT_EQ(word.load(), seen) << "no other thread woke it";
}

}  // namespace
}  // namespace tensorpool::platform
