#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "platform/platform.hpp"
#include "support/child_process.hpp"

namespace tensorpool::platform {
namespace {

bool is_of_first_thread() {
    return current_thread_id() == static_cast<std::uint64_t>(getpid());
}

TEST(ThreadId, IsSystemNumberAndDiffersByThread) {
    const std::uint64_t mine = current_thread_id();
    EXPECT_EQ(mine, current_thread_id());
    std::thread([mine] {
        const std::uint64_t other = current_thread_id();
        EXPECT_NE(other, mine);
        EXPECT_TRUE(std::filesystem::exists("/proc/self/task/" + std::to_string(other)));
    }).join();
}

TEST(ThreadId, FirstThreadHasNumberOfProcess) {
    EXPECT_TRUE(is_of_first_thread());
    EXPECT_TRUE(testing::holds_in_child(is_of_first_thread));
}

}  // namespace
}  // namespace tensorpool::platform
