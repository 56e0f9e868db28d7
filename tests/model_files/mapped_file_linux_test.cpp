// The kernel's view of a mapping: pages in its cache (mincore) and in this process (smaps).

#include <tensorpool/mapped_file.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "model_files/test_file.hpp"
#include "platform/platform.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

using files::File;
using files::numbered_text;

const std::size_t page = platform::page_bytes();

/// Returns the sum of a field such as "Rss:" of /proc/self/smaps (proc(5)) over the mappings in a
/// range.
std::size_t smaps_bytes(std::span<const std::byte> range, const std::string& field) {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
    std::ifstream smaps("/proc/self/smaps");
    bool is_within = false;
    std::size_t sum = 0;
    for (std::string line; std::getline(smaps, line);) {
        std::istringstream words(line);
        std::uintptr_t from = 0, to = 0;
        char dash = 0;
        if (words >> std::hex >> from >> dash >> to && dash == '-') {
            is_within = from < begin + range.size() && to > begin;
        } else if (is_within && line.starts_with(field)) {
            sum += std::stoull(line.substr(field.size())) * 1024;
        }
    }
    return sum;
}

/// Evicts the pages, so that they are only on the disk. Returns false if the file system keeps them
/// in memory.
bool make_cold(const MappedFile& mapped) {
    const int file = open(mapped.path().c_str(), O_RDONLY);
    const bool is_written = fsync(file) == 0;
    close(file);
    mapped.drop_pages();
    mapped.drop_from_cache();
    return is_written && mapped.resident_bytes() == 0;
}

TEST(MappedFileLinux, MappingReadsNothing) {
    const File file(numbered_text(64 * page));
    const MappedFile mapped = MappedFile::open(file.path());
    if (!make_cold(mapped)) GTEST_SKIP() << "the file system keeps its files in memory";
    EXPECT_EQ(MappedFile::open(file.path()).resident_bytes(), 0U);
    EXPECT_EQ(smaps_bytes(mapped.bytes(), "Rss:"), 0U);
}

TEST(MappedFileLinux, PrefetchesAPartNow) {
    const File file(numbered_text(512 * page));
    const MappedFile mapped = MappedFile::open(file.path());
    if (!make_cold(mapped)) GTEST_SKIP() << "the file system keeps its files in memory";
    EXPECT_EQ(mapped.prefetch(Prefetch::now, {10 * page + 1, 20 * page}), Advised::done);
    EXPECT_EQ(mapped.resident_bytes({10 * page, 21 * page}), 21 * page);
    EXPECT_LT(mapped.resident_bytes(), 64 * page);  // the file system may use larger units
    EXPECT_GE(smaps_bytes(mapped.bytes(), "Rss:"), 21 * page);  // no page fault remains
}

TEST(MappedFileLinux, PrefetchesAheadOfUse) {
    const File file(numbered_text(512 * page));
    const MappedFile mapped = MappedFile::open(file.path());
    if (!make_cold(mapped)) GTEST_SKIP() << "the file system keeps its files in memory";
    EXPECT_EQ(mapped.prefetch(Prefetch::ahead, {100 * page, 50 * page}), Advised::done);
    testing::wait_until("the pages are read ahead", [&] {
        return mapped.resident_bytes({100 * page, 50 * page}) >= 50 * page;
    });
    EXPECT_EQ(smaps_bytes(mapped.bytes(), "Rss:"), 0U);
}

TEST(MappedFileLinux, DropPagesLeavesThemInTheCache) {
    const File file(numbered_text(64 * page));
    const MappedFile mapped = MappedFile::open(file.path());
    ASSERT_EQ(mapped.prefetch(Prefetch::now), Advised::done);
    EXPECT_EQ(smaps_bytes(mapped.bytes(), "Rss:"), 64 * page);
    EXPECT_EQ(mapped.drop_pages({page + 1, 10 * page}), Advised::done);
    EXPECT_EQ(smaps_bytes(mapped.bytes(), "Rss:"), 55 * page);
    EXPECT_EQ(mapped.resident_bytes(), 64 * page);
}

TEST(MappedFileLinux, UnmappedPartsLeaveTheProcess) {
    const File file(numbered_text(64 * page));
    MappedFile mapped = MappedFile::open(file.path());
    ASSERT_EQ(mapped.prefetch(Prefetch::now), Advised::done);
    EXPECT_EQ(mapped.unmap({0, 48 * page}), 48 * page);
    EXPECT_EQ(smaps_bytes(mapped.bytes(), "Rss:"), 16 * page);
    EXPECT_EQ(smaps_bytes(mapped.bytes({48 * page}), "Rss:"), 16 * page);
}

TEST(MappedFileLinux, UnmappedPartsLeaveTheCacheOnRequest) {
    const File file(numbered_text(64 * page));
    MappedFile mapped = MappedFile::open(file.path());
    if (!make_cold(mapped)) GTEST_SKIP() << "the file system keeps its files in memory";
    ASSERT_EQ(mapped.prefetch(Prefetch::now), Advised::done);
    mapped.unmap({0, 32 * page});
    EXPECT_EQ(mapped.drop_from_cache({0, 32 * page}), Advised::done);
    EXPECT_EQ(MappedFile::open(file.path()).resident_bytes(), 32 * page);
}

TEST(MappedFileLinux, DestructorUnmapsAllAddresses) {
    const File file(numbered_text(64 * page));
    std::span<const std::byte> bytes;
    {
        MappedFile mapped = MappedFile::open(file.path());
        bytes = mapped.bytes();
        mapped.unmap({10 * page, 20 * page});
        EXPECT_GE(smaps_bytes(bytes, "Size:"), 64 * page);
    }
    EXPECT_EQ(smaps_bytes(bytes, "Size:"), 0U);
}

TEST(MappedFileLinux, IsAlignedForHugePages) {
    const File file("");
    constexpr std::size_t huge = platform::huge_page_bytes;
    std::filesystem::resize_file(file.path(), 4 * huge);
    const MappedFile whole = MappedFile::open(file.path());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(whole.bytes().data()) % huge, 0U);
    const MappedFile part = MappedFile::open(file.path(), {.part = {3 * page + 5}});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part.bytes().data()) % huge, 3 * page + 5);
    if (std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
        EXPECT_EQ(part.prefer_huge_pages(), Advised::done);
    }
}

}  // namespace
}  // namespace tensorpool
