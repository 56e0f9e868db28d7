#include "platform/system_calls.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

TEST(SystemCalls, RestoreErrno) {
    errno = 7;
    {
        const SystemCalls system_calls;
        errno = ENOENT;
    }
    EXPECT_EQ(errno, 7);
}

struct Cancelled {
    void (*work)();
    bool has_worked = false;
    bool has_ended = false;
};

void* work_cancelled(void* given) {
    auto& thread = *static_cast<Cancelled*>(given);
    pthread_cancel(pthread_self());
    thread.work();
    thread.has_worked = true;
    pthread_testcancel();
    thread.has_ended = true;
    return nullptr;
}

/// Returns whether a cancelled thread completes `work` and is cancelled afterwards.
bool is_cancelled_only_after(void (*work)()) {
    Cancelled cancelled{work};
    pthread_t thread;
    void* result = nullptr;
    EXPECT_EQ(pthread_create(&thread, nullptr, work_cancelled, &cancelled), 0);
    EXPECT_EQ(pthread_join(thread, &result), 0);
    return result == PTHREAD_CANCELED && cancelled.has_worked && !cancelled.has_ended;
}

TEST(SystemCalls, DeferThreadCancellation) {
    EXPECT_TRUE(is_cancelled_only_after([] {
        const SystemCalls system_calls;
        pthread_testcancel();
    }));
    EXPECT_FALSE(is_cancelled_only_after([] { pthread_testcancel(); }));
}

// Each of these calls reads system files or writes.
TEST(SystemCalls, PlatformCallsDeferThreadCancellation) {
    EXPECT_TRUE(is_cancelled_only_after([] { (void)available_memory(); }));
    EXPECT_TRUE(is_cancelled_only_after([] { (void)committable_memory(); }));
    EXPECT_TRUE(is_cancelled_only_after([] { (void)numa_node_count(); }));
    EXPECT_TRUE(is_cancelled_only_after([] { (void)identify_process(); }));
    EXPECT_TRUE(is_cancelled_only_after([] { write_to_stderr(" ", 1); }));
}

}  // namespace
}  // namespace tensorpool::platform
