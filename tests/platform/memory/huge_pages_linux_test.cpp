#include "platform/memory/memory_limits_linux.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

/// Returns whether /proc/self/maps has a mapping of exactly this range.
bool is_mapping(const unsigned char* begin, std::size_t bytes) {
    std::ostringstream range;
    range << std::hex << reinterpret_cast<std::uintptr_t>(begin) << '-'
          << reinterpret_cast<std::uintptr_t>(begin + bytes) << ' ';
    std::ifstream file("/proc/self/maps");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(range.str())) return true;
    }
    return false;
}

class LinuxPreferHugePages : public ::testing::Test {
protected:
    static constexpr std::size_t bytes = 4 * huge_page_bytes;

    void SetUp() override { ASSERT_NE(begin, nullptr); }
    void TearDown() override { unmap(begin, bytes); }

    unsigned char* const begin = static_cast<unsigned char*>(map(bytes, huge_page_bytes));
};

TEST_F(LinuxPreferHugePages, RequestsWholeHugePagesInsideRange) {
    const bool known = std::filesystem::exists("/sys/kernel/mm/transparent_hugepage");
    EXPECT_EQ(prefer_huge_pages(begin + 1, bytes - 2), known);
    EXPECT_EQ(is_mapping(begin + huge_page_bytes, 2 * huge_page_bytes), known);
}

TEST_F(LinuxPreferHugePages, RejectsRangeOneByteShortOfHugePage) {
    EXPECT_FALSE(prefer_huge_pages(begin, huge_page_bytes - 1));
    EXPECT_FALSE(prefer_huge_pages(begin + 1, 2 * huge_page_bytes - 2));
}

TEST_F(LinuxPreferHugePages, RequestsMediumPagesExceptInFirstPageOfHugePage) {
    const bool known = std::filesystem::exists("/sys/kernel/mm/transparent_hugepage");
    const std::size_t page = page_bytes();
    EXPECT_EQ(prefer_medium_pages(begin + page, 2 * huge_page_bytes - page), known);
    EXPECT_EQ(is_mapping(begin + page, huge_page_bytes - page), known);
    EXPECT_EQ(is_mapping(begin + huge_page_bytes + page, huge_page_bytes - page), known);
}

TEST_F(LinuxPreferHugePages, SeparateMediumRequestsKeepFirstPageExcluded) {
    const bool known = std::filesystem::exists("/sys/kernel/mm/transparent_hugepage");
    constexpr std::size_t half = huge_page_bytes / 2;
    EXPECT_EQ(prefer_medium_pages(begin + half, half), known);
    EXPECT_EQ(prefer_medium_pages(begin, half), known);
    EXPECT_EQ(is_mapping(begin + page_bytes(), huge_page_bytes - page_bytes()), known);
}

TEST_F(LinuxPreferHugePages, SmallPagesRestoreOneMapping) {
    const bool known = std::filesystem::exists("/sys/kernel/mm/transparent_hugepage");
    prefer_medium_pages(begin + huge_page_bytes, 2 * huge_page_bytes);
    EXPECT_EQ(prefer_small_pages(begin + huge_page_bytes, 2 * huge_page_bytes), known);
    EXPECT_EQ(is_mapping(begin + huge_page_bytes, 2 * huge_page_bytes), known);
}

/// The settings of a kernel with page sizes of 16 KiB to 2 MiB.
class LinuxFolioSizes : public ::testing::Test {
protected:
    LinuxFolioSizes() {
        set_common("madvise");
        for (unsigned kib = 16; kib <= 1024; kib *= 2) set(kib, "never");
        set(2048, "inherit");
    }
    void set_common(const std::string& word) const {
        write("/enabled", "always madvise never", word);
    }
    void set(unsigned kib, const std::string& word) const {
        write("/hugepages-" + std::to_string(kib) + "kB/enabled", "always inherit madvise never",
              word);
    }
    FolioSizes sizes() const { return read_folio_sizes(tree_.root()); }

private:
    void write(const std::string& path, std::string words, const std::string& word) const {
        words.insert(words.find(word) + word.size(), "]");
        words.insert(words.find(word), "[");
        tree_.write(path, words + "\n");
    }

    testing::FileTree tree_;
};

TEST_F(LinuxFolioSizes, DefaultSettingsGiveHugePagesOnly) {
    EXPECT_TRUE(sizes().huge);
    EXPECT_EQ(sizes().medium, 0U);
}

TEST_F(LinuxFolioSizes, MediumIsLargestSizeWithMadvise) {
    set(1024, "madvise");
    EXPECT_EQ(sizes().medium, 1024U << 10);
    set(512, "madvise");
    EXPECT_EQ(sizes().medium, 1024U << 10);
    set(1024, "never");
    EXPECT_EQ(sizes().medium, 512U << 10);
}

TEST_F(LinuxFolioSizes, SizesBelowFourPagesAreIgnored) {
    const auto kib = static_cast<unsigned>(page_bytes() / 1024);
    set(kib, "madvise");
    EXPECT_EQ(sizes().medium, 0U);
    set(4 * kib, "madvise");
    EXPECT_EQ(sizes().medium, 4 * page_bytes());
}

TEST_F(LinuxFolioSizes, InheritUsesCommonSetting) {
    set(256, "inherit");
    EXPECT_EQ(sizes().medium, 256U << 10);
    set_common("never");
    EXPECT_FALSE(sizes().huge);
    EXPECT_EQ(sizes().medium, 0U);
}

TEST_F(LinuxFolioSizes, SizesGivenToAllMemoryNeedNoRequest) {
    set(512, "madvise");
    set(1024, "always");
    EXPECT_EQ(sizes().medium, 512U << 10);
    set_common("always");
    EXPECT_FALSE(sizes().huge);
    EXPECT_EQ(sizes().medium, 0U) << "a request for smaller pages would remove the huge pages";
}

TEST_F(LinuxFolioSizes, HugePagesCanBeDisabledAlone) {
    set(2048, "never");
    set(256, "madvise");
    EXPECT_FALSE(sizes().huge);
    EXPECT_EQ(sizes().medium, 256U << 10);
}

TEST(LinuxFolioSizesOfOlderKernels, CommonSettingAppliesToHugePages) {
    const testing::FileTree tree;
    EXPECT_FALSE(read_folio_sizes(tree.root()).huge);
    tree.write("/enabled", "always [madvise] never\n");
    EXPECT_TRUE(read_folio_sizes(tree.root()).huge);
    EXPECT_EQ(read_folio_sizes(tree.root()).medium, 0U);
}

}  // namespace
}  // namespace tensorpool::platform
