#include "platform/process/process_status_linux.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

TEST(ProcessStatus, ReadsOwnStatus) {
    const ProcessStatus status("/proc/self");
    ASSERT_TRUE(status.has_ids());
    EXPECT_TRUE(status.runs_as_user(::geteuid()));
    EXPECT_FALSE(status.runs_as_user(::geteuid() + 1));
    EXPECT_TRUE(status.runs_as_group(::getegid()));
    EXPECT_EQ(status.innermost_number(), static_cast<std::uint64_t>(::getpid()));
}

TEST(ProcessStatus, ParsesIdsCapabilitiesAndInnermostNumber) {
    const testing::FileTree files;
    files.write("/p/status",
                "Name:\tUid:\nUid:\t1000\t1000\t1001\t1000\nGid:\t5\t5\t5\t5\n"
                "NSpid:\t77\t12\t3\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000000401\n");
    const ProcessStatus status(files.path("/p"));
    EXPECT_TRUE(status.has_ids());
    EXPECT_FALSE(status.runs_as_user(1000)) << "the saved user is another one";
    EXPECT_TRUE(status.runs_as_group(5));
    EXPECT_EQ(status.permitted(), 0x1ffffffffffU);
    EXPECT_EQ(status.effective(), 0x401U);
    EXPECT_EQ(status.innermost_number(), 3U);
}

TEST(ProcessStatus, MissingProcessHasNoStatus) {
    const ProcessStatus status("/proc/none");
    EXPECT_FALSE(status.has_ids());
    EXPECT_FALSE(status.runs_as_user(0));
    EXPECT_EQ(status.innermost_number(), 0U);
}

TEST(SameUserSpace, ComparesUserMaps) {
    const testing::FileTree files;
    files.write("/a/uid_map", "         0          0 4294967295\n");
    files.write("/b/uid_map", "         0       1000          1\n");
    EXPECT_TRUE(same_user_space(files.path("/a"), files.path("/a")));
    EXPECT_FALSE(same_user_space(files.path("/a"), files.path("/b")));
}

TEST(SameUserSpace, HoldsForProcessAndItself) {
    EXPECT_TRUE(same_user_space("/proc/self", "/proc/self"));
    EXPECT_FALSE(same_user_space("/proc/self", "/proc/none"));
}

}  // namespace
}  // namespace tensorpool::platform
