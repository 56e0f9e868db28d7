#include "platform/files/observed_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

class ObservedFiles : public ::testing::Test {
protected:
    ObservedFiles() {
        std::string pattern = std::filesystem::temp_directory_path() / "observed-XXXXXX";
        folder = ::mkdtemp(pattern.data());
    }
    ~ObservedFiles() override { std::filesystem::remove_all(folder); }

    void write(const std::string& name, const std::string& text) {
        std::ofstream(folder + '/' + name) << text;
    }

    std::string folder;
};

TEST_F(ObservedFiles, NumbersInReturnsNumericNamesInOrder) {
    for (const char* name : {"12", "7", "x", "9a", "-3", "100"}) write(name, "");
    EXPECT_EQ(numbers_in(folder), (std::vector<std::uint64_t>{7, 12, 100}));
    EXPECT_TRUE(numbers_in(folder + "/none").empty());
}

TEST_F(ObservedFiles, ReadsFromAnyOffsetToEnd) {
    write("5", "0123456789");
    const ObservedFile file = open_in(folder, 5);
    ASSERT_TRUE(file);
    EXPECT_EQ(file.bytes(), 10U);
    char text[16] = {};
    EXPECT_EQ(file.read(4, text, 3), 3U);
    EXPECT_STREQ(text, "456");
    EXPECT_EQ(file.read(8, text, 16), 2U);
    EXPECT_EQ(file.read(100, text, 16), 0U);
    EXPECT_FALSE(file.is_sealed());
}

TEST_F(ObservedFiles, RejectsLinksFoldersAndPipes) {
    write("5", "text");
    std::filesystem::create_symlink(folder + "/5", folder + "/6");
    std::filesystem::create_directory(folder + "/7");
    ASSERT_EQ(::mkfifo((folder + "/8").c_str(), 0600), 0);
    EXPECT_FALSE(open_in(folder, 6));
    EXPECT_FALSE(open_in(folder, 7));
    EXPECT_FALSE(open_in(folder, 8));
    EXPECT_FALSE(open_in(folder, 9));
}

TEST_F(ObservedFiles, AreClosedByExec) {
    write("5", "text");
    const int before = ::dup(0);
    ::close(before);
    const ObservedFile file = open_in(folder, 5);
    EXPECT_NE(::fcntl(before, F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ObservedFiles, ReportsWhetherLockIsHeld) {
    write("5", "text");
    const ObservedFile file = open_in(folder, 5);
    EXPECT_EQ(file.lock(), ObservedFile::Lock::free);
    const int owner = ::open((folder + "/5").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(owner, LOCK_EX), 0);
    EXPECT_EQ(file.lock(), ObservedFile::Lock::held);
    ::close(owner);
    EXPECT_EQ(file.lock(), ObservedFile::Lock::free);
    const int other = ::open((folder + "/5").c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0) << "a look leaves no lock behind";
    ::close(other);
}

TEST_F(ObservedFiles, AreRemovedOnlyIfUnchanged) {
    write("5", "old");
    const ObservedFile old = open_in(folder, 5);
    std::filesystem::rename(folder + "/5", folder + "/kept");
    write("5", "new");
    EXPECT_FALSE(remove_in(folder, 5, old));
    EXPECT_TRUE(std::filesystem::exists(folder + "/5"));
    EXPECT_TRUE(remove_in(folder, 5, open_in(folder, 5)));
    EXPECT_FALSE(std::filesystem::exists(folder + "/5"));
}

TEST_F(ObservedFiles, MapSharesLaterWrites) {
    write("5", std::string(8192, 'a'));
    const ObservedFile file = open_in(folder, 5);
    const auto* const map = static_cast<const char*>(file.map(8192));
    ASSERT_NE(map, nullptr);
    std::fstream(folder + "/5", std::ios::in | std::ios::out) << "b";
    EXPECT_EQ(map[0], 'b');
    EXPECT_EQ(map[1], 'a');
    unmap(const_cast<char*>(map), 8192);
}

TEST_F(ObservedFiles, MoveTransfersDescriptor) {
    write("5", "text");
    ObservedFile one = open_in(folder, 5);
    ObservedFile other;
    EXPECT_FALSE(other);
    other = std::move(one);
    EXPECT_TRUE(other);
    const ObservedFile third(std::move(other));
    EXPECT_EQ(third.bytes(), 4U);
}

}  // namespace
}  // namespace tensorpool::platform
