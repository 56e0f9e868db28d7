#include "platform/files/spill_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace tensorpool::platform {
namespace {

using Bytes = std::vector<std::byte>;

/// A file in the folder of the tests, which lies on a disk unless the machine has none.
class SpillFileTest : public ::testing::Test {
protected:
    void SetUp() override {
        const FileProblem problem = file_.open(".");
        if (problem) GTEST_SKIP() << "no file can be spilled to here: " << problem.text;
    }
    static Bytes pattern(std::size_t bytes) {
        Bytes all(bytes);
        for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i * 31 + i / 256);
        return all;
    }
    SpillFile file_;
};

TEST_F(SpillFileTest, ReadsBackWhatWasWritten) {
    const Bytes bytes = pattern(100'000);
    ASSERT_FALSE(file_.write(8192, bytes));
    ASSERT_FALSE(file_.settle(8192, bytes.size()));
    file_.read_ahead(8192, bytes.size());
    Bytes back(bytes.size());
    ASSERT_FALSE(file_.read(8192, back));
    EXPECT_TRUE(back == bytes);
}

TEST_F(SpillFileTest, FreedBytesReadAsZeros) {
    const Bytes bytes = pattern(16'384);
    ASSERT_FALSE(file_.write(0, bytes));
    ASSERT_TRUE(file_.free(4096, 8192));
    Bytes back(bytes.size());
    ASSERT_FALSE(file_.read(0, back));
    EXPECT_EQ(back[4095], bytes[4095]);
    EXPECT_EQ(back[4096], std::byte{0});
    EXPECT_EQ(back[12'287], std::byte{0});
    EXPECT_EQ(back[12'288], bytes[12'288]);
}

TEST_F(SpillFileTest, EndOfFileIsAProblem) {
    ASSERT_FALSE(file_.write(0, pattern(1000)));
    Bytes back(1500);
    EXPECT_STREQ(file_.read(0, back).text,
                 "found the end of the file after 1000 bytes, expected 1500");
}

TEST_F(SpillFileTest, HasNoNameAndNoOtherReaders) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        struct stat found = {};
        if (stat(entry.path().c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
        if (found.st_nlink != 0) continue;
        EXPECT_EQ(found.st_mode & 0777U, 0600U);
        return;
    }
    ADD_FAILURE() << "no open file without a name";
}

TEST_F(SpillFileTest, LimitOnFileSizesIsAProblemAndNoSignal) {
    EXPECT_TRUE(testing::holds_in_child([&] {
        const rlimit limit = {65'536, 65'536};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
        const FileProblem whole = file_.write(65'536, pattern(10));
        // The first half fits.
        const FileProblem half = file_.write(65'536 - 4096, pattern(8192));
        return std::string(whole.text) == "write: File too large" &&
               std::string(half.text) == "write: File too large";
    }));
}

TEST(SpillFile, ClosesItsDescriptor) {
    const auto count = [] {
        const std::filesystem::directory_iterator files("/proc/self/fd");
        return std::distance(begin(files), end(files));
    };
    const auto before = count();
    {
        SpillFile file;
        (void)file.open(".");
    }
    EXPECT_EQ(count(), before);
}

TEST(SpillFile, FoldersInMemoryAreRefused) {
    if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << "this machine has no /dev/shm";
    SpillFile file;
    EXPECT_STREQ(file.open("/dev/shm").text,
                 "found a file system in memory (tmpfs or ramfs), expected one on a disk");
}

TEST(SpillFile, MissingFoldersAreRefused) {
    SpillFile file;
    EXPECT_STREQ(file.open("/nowhere/at/all").text,
                 "no unnamed file can be created there (O_TMPFILE): No such file or directory");
}

}  // namespace
}  // namespace tensorpool::platform
