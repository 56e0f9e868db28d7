#include "platform/files/input_file.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

InputFile open_whole(const std::string& path) {
    std::error_code error;
    InputFile file = InputFile::open(path.c_str(), error);
    EXPECT_FALSE(error) << error.message();
    return file;
}

TEST(InputFile, ReportsKindOfFile) {
    const testing::FileTree tree;
    tree.write("/file", "text");
    ASSERT_EQ(mkfifo(tree.path("/pipe").c_str(), 0600), 0);
    EXPECT_EQ(open_whole(tree.path("/file")).kind(), FileKind::regular);
    EXPECT_EQ(open_whole(tree.root()).kind(), FileKind::folder);
    EXPECT_EQ(open_whole(tree.path("/pipe")).kind(), FileKind::pipe);
    EXPECT_EQ(open_whole("/dev/zero").kind(), FileKind::device);
}

TEST(InputFile, ReportsSystemErrorAndPreservesErrno) {
    std::error_code error;
    errno = 4711;
    EXPECT_FALSE(InputFile::open("/no/such/file", error));
    EXPECT_EQ(error, std::errc::no_such_file_or_directory);
    EXPECT_EQ(errno, 4711);
}

TEST(InputFile, ReadsUpToEnd) {
    const testing::FileTree tree;
    tree.write("/file", "0123456789");
    const InputFile file = open_whole(tree.path("/file"));
    char text[8] = {};
    std::error_code error;
    EXPECT_EQ(file.bytes(), 10U);
    EXPECT_EQ(file.read(4, text, sizeof text, error), 6U);
    EXPECT_STREQ(text, "456789");
    EXPECT_EQ(file.read(10, text, 1, error), 0U);
    EXPECT_FALSE(error);
}

TEST(InputFile, ReportsReadError) {
    const InputFile folder = open_whole("/");
    char text[8];
    std::error_code error;
    EXPECT_EQ(folder.read(0, text, sizeof text, error), 0U);
    EXPECT_EQ(error, std::errc::is_a_directory);
}

TEST(InputFile, IsMoveOnlyAndClosedByExec) {
    const int lowest = open("/dev/null", O_RDONLY);  // the number that the next file gets
    close(lowest);
    InputFile first = open_whole("/dev/null");
    EXPECT_EQ(fcntl(lowest, F_GETFD), FD_CLOEXEC);
    InputFile second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_TRUE(second);
    first = std::move(second);
    EXPECT_TRUE(first);
}

TEST(InputFile, ReportsMapError) {
    std::error_code error;
    EXPECT_EQ(open_whole("/").map(0, 10, true, error).address, nullptr);
    EXPECT_EQ(error, std::errc::no_such_device);
}

TEST(InputFile, ReportsLackOfAddressSpace) {
    const testing::FileTree tree;
    tree.write("/file", "text");
    const InputFile file = open_whole(tree.path("/file"));
    EXPECT_TRUE(testing::holds_in_child([&] {
        const rlimit little{std::uint64_t{1} << 20, std::uint64_t{1} << 20};
        std::error_code error;
        return setrlimit(RLIMIT_AS, &little) == 0 &&
               file.map(0, std::size_t{1} << 30, true, error).address == nullptr &&
               error == std::errc::not_enough_memory;
    }));
    std::error_code error;
    EXPECT_EQ(file.map(0, SIZE_MAX - 2 * page_bytes(), true, error).address, nullptr);
    EXPECT_EQ(error, std::errc::not_enough_memory);
}

}  // namespace
}  // namespace tensorpool::platform
