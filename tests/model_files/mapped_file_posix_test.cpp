// Changes of a file while it is mapped, and files that are not regular.

#include <tensorpool/mapped_file.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "model_files/test_file.hpp"
#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

using files::error_of;
using files::File;
using files::numbered_text;
using files::text_of;
using testing::FileTree;

const std::size_t page = platform::page_bytes();

std::string open_error(const std::string& path) {
    return error_of<std::system_error>([&] { (void)MappedFile::open(path); });
}

TEST(MappedFilePosix, RefusesFilesThatAreNotRegularWithoutWaiting) {
    const FileTree tree;
    const std::string pipe = tree.path("/pipe");
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(open_error(pipe),
              "tensorpool: map " + pipe + ": a pipe, expected a regular file: Invalid argument");
    EXPECT_EQ(open_error("/dev/null"),
              "tensorpool: map /dev/null: a device, expected a regular file: Invalid argument");
    EXPECT_EQ(open_error(tree.root()), "tensorpool: map " + tree.root() + ": Is a directory");
}

TEST(MappedFilePosix, ReportsPermissionErrors) {
    const File file("content");
    ASSERT_EQ(chmod(file.path().c_str(), 0), 0);
    ASSERT_EQ(chmod(file.tree.root().c_str(), 0755), 0);
    EXPECT_TRUE(testing::holds_in_child([&] {
        if (geteuid() == 0 && seteuid(65534) != 0) return false;  // root may read every file
        return open_error(file.path()) == "tensorpool: map " + file.path() + ": Permission denied";
    }));
}

TEST(MappedFilePosix, RefusalLeaksNoDescriptor) {
    const File file(numbered_text(10));
    const std::size_t descriptors = testing::descriptor_count();
    EXPECT_THROW((void)MappedFile::open("/dev/null"), std::system_error);
    EXPECT_THROW((void)MappedFile::open(file.path(), {.part = {11}}), std::out_of_range);
    EXPECT_EQ(testing::descriptor_count(), descriptors);
    { const MappedFile mapped = MappedFile::open(file.path()); }
    EXPECT_EQ(testing::descriptor_count(), descriptors);
}

TEST(MappedFilePosix, HolesOfASparseFileReadAsZeros) {
    const File file("begin");
    std::filesystem::resize_file(file.path(), std::uintmax_t{1} << 36);
    const MappedFile mapped = MappedFile::open(file.path());
    EXPECT_EQ(mapped.bytes().size(), std::size_t{1} << 36);
    EXPECT_EQ(mapped.bytes()[(std::size_t{1} << 36) - 1], std::byte{0});
    EXPECT_EQ(text_of(mapped.bytes({0, 5})), "begin");
}

TEST(MappedFilePosix, KeepsTheOldFileAfterARename) {
    const File file("the old one");
    const MappedFile mapped = MappedFile::open(file.path());
    file.tree.write("/new", "new");
    std::filesystem::rename(file.tree.path("/new"), file.path());
    std::vector<std::byte> copy(11);
    mapped.copy_to(0, copy);
    EXPECT_EQ(text_of(copy), "the old one");
    EXPECT_EQ(text_of(mapped.bytes()), "the old one");
}

// A file that is cut short ------------------------------------------------------------------------

TEST(MappedFilePosix, CopyFromAShortenedFileReportsBothSizes) {
    const std::string content = numbered_text(4 * page);
    const File file(content);
    const MappedFile mapped = MappedFile::open(file.path());
    std::filesystem::resize_file(file.path(), page + 100);
    EXPECT_EQ(mapped.file_bytes(), page + 100);
    std::vector<std::byte> copy(page);
    try {
        mapped.copy_to(page, copy);
        FAIL();
    } catch (const FileCutShortError& error) {
        EXPECT_EQ(error.path(), file.path());
        EXPECT_EQ(error.asked(), (FilePart{page, page}));
        EXPECT_EQ(error.found(), page + 100);
        EXPECT_EQ(std::string(error.what()),
                  "tensorpool: read " + std::to_string(page) + " bytes at offset " +
                      std::to_string(page) + " of " + file.path() + ": the file has " +
                      std::to_string(page + 100) + " bytes, expected at least " +
                      std::to_string(2 * page) + ": it was cut short while it was mapped");
    }
    EXPECT_EQ(text_of(std::span(copy).first(100)), content.substr(page, 100));
}

TEST(MappedFilePosix, CopyBeyondAShortenedFileReportsItsSize) {
    const File file(numbered_text(4 * page));
    const MappedFile mapped = MappedFile::open(file.path());
    std::filesystem::resize_file(file.path(), 3);
    std::vector<std::byte> copy(10);
    try {
        mapped.copy_to(2 * page, copy);
        FAIL();
    } catch (const FileCutShortError& error) {
        EXPECT_EQ(error.found(), 3U);
    }
    EXPECT_NO_THROW(mapped.copy_to(0, std::span(copy).first(3)));
}

// The last page of a shortened file reads as zeros behind its end, without a signal. A copy of the
// mapping would not notice missing bytes.
TEST(MappedFilePosix, CopyDetectsACutWithinAPage) {
    const File file(numbered_text(page));
    const MappedFile mapped = MappedFile::open(file.path());
    std::filesystem::resize_file(file.path(), 100);
    EXPECT_EQ(mapped.bytes()[200], std::byte{0});
    std::vector<std::byte> copy(1);
    EXPECT_THROW(mapped.copy_to(200, copy), FileCutShortError);
}

TEST(MappedFilePosix, CopyWorksAfterTheFileIsRestored) {
    const std::string content = numbered_text(2 * page);
    const File file(content);
    const MappedFile mapped = MappedFile::open(file.path());
    std::filesystem::resize_file(file.path(), 0);
    std::vector<std::byte> copy(2 * page);
    EXPECT_THROW(mapped.copy_to(0, copy), FileCutShortError);
    file.tree.write("/model", content);
    mapped.copy_to(0, copy);
    EXPECT_EQ(text_of(copy), content);
    EXPECT_EQ(text_of(mapped.bytes()), content);
}

TEST(MappedFilePosix, PrefetchBeyondAShortenedFileIsRefused) {
    const File file(numbered_text(4 * page));
    const MappedFile mapped = MappedFile::open(file.path());
    std::filesystem::resize_file(file.path(), page);
    EXPECT_EQ(mapped.prefetch(Prefetch::now), Advised::refused);
    EXPECT_EQ(mapped.prefetch(Prefetch::now, {0, page}), Advised::done);
}

TEST(MappedFilePosix, InstallsNoSignalHandler) {
    struct sigaction before {
    }, after{};
    ASSERT_EQ(sigaction(SIGBUS, nullptr, &before), 0);
    const File file(numbered_text(2 * page));
    MappedFile mapped = MappedFile::open(file.path());
    std::filesystem::resize_file(file.path(), 0);
    std::vector<std::byte> copy(1);
    EXPECT_THROW(mapped.copy_to(0, copy), FileCutShortError);
    mapped.prefetch(Prefetch::now);
    ASSERT_EQ(sigaction(SIGBUS, nullptr, &after), 0);
    EXPECT_EQ(before.sa_handler, after.sa_handler);
    EXPECT_EQ(before.sa_sigaction, after.sa_sigaction);
}

// Unmapping ---------------------------------------------------------------------------------------

TEST(MappedFilePosixDeathTest, UnmappedPagesFault) {
    const File file(numbered_text(3 * page));
    MappedFile mapped = MappedFile::open(file.path());
    mapped.unmap({page, page});
    const volatile std::byte* const bytes = mapped.bytes().data();
    EXPECT_DEATH((void)bytes[page], "");
    EXPECT_EQ(text_of(mapped.bytes({0, page})), numbered_text(page));
}

// If these addresses were free, the next mapping of the process could lie there, and the destructor
// of this one would remove it.
TEST(MappedFilePosix, UnmappedAddressesStayReserved) {
    const File file(numbered_text(64 * page));
    MappedFile mapped = MappedFile::open(file.path());
    const std::byte* const begin = mapped.bytes().data();
    mapped.unmap();
    std::vector<MappedFile> others;
    for (int i = 0; i < 100; ++i) {
        others.push_back(MappedFile::open(file.path()));
        const std::byte* const other = others.back().bytes().data();
        EXPECT_TRUE(other >= begin + 64 * page || other + 64 * page <= begin);
    }
}

}  // namespace
}  // namespace tensorpool
