#include "platform/files/file_pages.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool::platform {
namespace {

TEST(PageLocks, LockedMemoryCountsLocksUntilUnlocked) {
    if (testing::sanitized()) GTEST_SKIP() << "mlock does nothing here";
    const std::size_t before = locked_memory();
    void* const memory = map(4 * page_bytes(), page_bytes());
    int error = 0;
    errno = 4711;
    EXPECT_EQ(lock_pages(memory, 4 * page_bytes(), error), LockRefusal::none);
    EXPECT_EQ(lock_pages(memory, page_bytes(), error), LockRefusal::none);
    EXPECT_EQ(locked_memory(), before + 4 * page_bytes());
    unlock_pages(memory, 4 * page_bytes());
    EXPECT_EQ(locked_memory(), before);
    EXPECT_EQ(error, 0);
    EXPECT_EQ(errno, 4711);
    unmap(memory, 4 * page_bytes());
}

TEST(PageLocks, FailedLockLeavesNoPagesLocked) {
    if (testing::sanitized()) GTEST_SKIP() << "mlock does nothing here";
    const std::size_t before = locked_memory();
    void* const memory = map(4 * page_bytes(), page_bytes());
    unmap(static_cast<char*>(memory) + 3 * page_bytes(), page_bytes());
    int error = 0;
    EXPECT_EQ(lock_pages(memory, 4 * page_bytes(), error), LockRefusal::pages);
    EXPECT_EQ(error, ENOMEM);
    EXPECT_EQ(locked_memory(), before);
    unmap(memory, 3 * page_bytes());
}

TEST(PageLocks, ReportsLimitsOfProcess) {
    EXPECT_TRUE(testing::holds_in_child([] {
        const rlimit limit{12345, 54321};
        return setrlimit(RLIMIT_MEMLOCK, &limit) == 0 && lock_limits().soft == 12345 &&
               lock_limits().hard == 54321;
    }));
    EXPECT_STREQ(lock_limit_name(), "RLIMIT_MEMLOCK");
}

TEST(PageLocks, ExplainsHowToRaiseLimit) {
    EXPECT_EQ(
        how_to_raise_lock_limit(1025, false),
        "`ulimit -l 2` in the shell that starts the program, LimitMEMLOCK=1025 in its systemd "
        "unit, or --ulimit memlock=1025:1025 for its container");
    EXPECT_EQ(how_to_raise_lock_limit(1024, true),
              "a line `USER - memlock 1` in /etc/security/limits.conf and a new login, "
              "LimitMEMLOCK=1024 in its systemd unit, or --ulimit memlock=1024:1024 for its "
              "container");
}

TEST(MemoryRoom, ReportsAvailableMemoryAndItsLimit) {
    const MemoryRoom room = memory_room();
    EXPECT_GT(room.available, 0U);
    EXPECT_LE(room.available, room.limit);
    EXPECT_GE(room.limit, total_memory());
}

}  // namespace
}  // namespace tensorpool::platform
