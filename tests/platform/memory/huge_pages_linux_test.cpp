#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

/// Whether /proc/self/maps has a mapping of exactly this range.
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

TEST_F(LinuxPreferHugePages, WholeHugePagesInsideTheRangeAreAskedFor) {
    const bool known = std::filesystem::exists("/sys/kernel/mm/transparent_hugepage");
    EXPECT_EQ(prefer_huge_pages(begin + 1, bytes - 2), known);
    EXPECT_EQ(is_mapping(begin + huge_page_bytes, 2 * huge_page_bytes), known);
}

TEST_F(LinuxPreferHugePages, OneByteShortOfAHugePageIsRefused) {
    EXPECT_FALSE(prefer_huge_pages(begin, huge_page_bytes - 1));
    EXPECT_FALSE(prefer_huge_pages(begin + 1, 2 * huge_page_bytes - 2));
}

}  // namespace
}  // namespace tensorpool::platform
