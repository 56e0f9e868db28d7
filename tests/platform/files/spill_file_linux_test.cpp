#include "platform/files/spill_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
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
    /// Returns a descriptor of the file: the one file of this process without a name.
    static int descriptor() {
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            struct stat found = {};
            if (stat(entry.path().c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
                found.st_nlink == 0)
                return std::stoi(entry.path().filename());
        }
        return -1;
    }
    /// Returns how many pages of the first 16 units of the file are in the page cache.
    static std::size_t cached_pages() {
        void* const mapped =
            mmap(nullptr, 16 * SpillFile::unit, PROT_READ, MAP_SHARED, descriptor(), 0);
        std::array<unsigned char, 16> pages = {};
        EXPECT_EQ(mincore(mapped, 16 * SpillFile::unit, pages.data()), 0);
        munmap(mapped, 16 * SpillFile::unit);
        return static_cast<std::size_t>(
            std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
    }
    SpillFile file_;
};

TEST_F(SpillFileTest, ReadsBackWhatWasWritten) {
    const Bytes bytes = pattern(100'000);
    ASSERT_FALSE(file_.write(8192, bytes));
    ASSERT_FALSE(file_.settle(8192, bytes.size()));
    file_.read_ahead(8192, bytes.size());
    Bytes back(bytes.size());
    for (const ReadFrom from : {ReadFrom::disk, ReadFrom::page_cache}) {
        std::ranges::fill(back, std::byte{0});
        ASSERT_FALSE(file_.read(8192, back, from));
        EXPECT_TRUE(back == bytes);
    }
}

TEST_F(SpillFileTest, TakesBytesOfAnySizeAndAddress) {
    const Bytes all = pattern(70'000);
    Bytes back(all.size() + 1, std::byte{'x'});
    for (const std::size_t begin : {0, 1, 512}) {
        for (const std::size_t size : {1, 4095, 4096, 4097, 16'384, 16'385, 69'000}) {
            ASSERT_FALSE(file_.write(4096, std::span(all).subspan(begin, size)));
            const std::span read = std::span(back).subspan(begin, size);
            ASSERT_FALSE(file_.read(4096, read, ReadFrom::disk));
            EXPECT_TRUE(std::ranges::equal(read, std::span(all).subspan(begin, size)));
            EXPECT_EQ(back[begin + size], std::byte{'x'}) << begin << " " << size;
            std::ranges::fill(back, std::byte{'x'});
        }
    }
}

TEST_F(SpillFileTest, AlignedBytesBypassThePageCache) {
    alignas(SpillFile::unit) static std::byte bytes[16 * SpillFile::unit];
    ASSERT_FALSE(file_.write(0, bytes));
    ASSERT_FALSE(file_.settle(0, sizeof bytes));
    ASSERT_FALSE(file_.read(0, bytes, ReadFrom::disk));
    const int direct = open(".", O_TMPFILE | O_RDWR | O_DIRECT, 0600);
    if (direct < 0) GTEST_SKIP() << "the file system knows no direct reads and writes";
    close(direct);
    EXPECT_EQ(cached_pages(), 0U);
    file_.read_ahead(0, sizeof bytes);
    ASSERT_FALSE(file_.read(0, bytes, ReadFrom::page_cache));
    EXPECT_GT(cached_pages(), 0U);
}

TEST_F(SpillFileTest, FreedBytesReadAsZeros) {
    const Bytes bytes = pattern(16'384);
    ASSERT_FALSE(file_.write(0, bytes));
    ASSERT_TRUE(file_.free(4096, 8192));
    Bytes back(bytes.size());
    ASSERT_FALSE(file_.read(0, back, ReadFrom::disk));
    EXPECT_EQ(back[4095], bytes[4095]);
    EXPECT_EQ(back[4096], std::byte{0});
    EXPECT_EQ(back[12'287], std::byte{0});
    EXPECT_EQ(back[12'288], bytes[12'288]);
}

TEST_F(SpillFileTest, EndOfFileIsAProblem) {
    ASSERT_FALSE(file_.write(0, pattern(SpillFile::unit)));
    Bytes back(5000);
    EXPECT_STREQ(file_.read(0, back, ReadFrom::disk).text,
                 "found the end of the file after 4096 bytes, expected 5000");
}

TEST_F(SpillFileTest, HasNoNameAndNoOtherReaders) {
    struct stat found = {};
    ASSERT_EQ(fstat(descriptor(), &found), 0) << "no open file without a name";
    EXPECT_EQ(found.st_mode & 0777U, 0600U);
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

TEST_F(SpillFileTest, LimitWithinABlockOfTheDiskIsTheSameProblem) {
    alignas(SpillFile::unit) static std::byte bytes[4 * SpillFile::unit];
    EXPECT_TRUE(testing::holds_in_child([&] {
        const rlimit limit = {10'000, 10'000};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
        return std::string(file_.write(0, bytes).text) == "write: File too large" &&
               std::string(file_.write(8192, bytes).text) == "write: File too large" &&
               std::string(file_.write(12'288, bytes).text) == "write: File too large";
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
