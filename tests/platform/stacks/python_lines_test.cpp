#include <gtest/gtest.h>

#include <vector>

#include "platform/stacks/python_layout.hpp"

namespace tensorpool::platform::python {
namespace {

// The first byte of an entry: kind, and the number of instructions.
constexpr unsigned char entry(unsigned kind, unsigned instructions) {
    return static_cast<unsigned char>(128 | kind << 3 | (instructions - 1));
}

std::vector<std::uint32_t> lines(const std::vector<unsigned char>& table, std::uint32_t first,
                                 std::ptrdiff_t instructions) {
    std::vector<std::uint32_t> found;
    for (std::ptrdiff_t i = 0; i != instructions; ++i) {
        found.push_back(line_in_table(table.data(), table.size(), first, i));
    }
    return found;
}

TEST(PythonLines, FollowTheShortFormsOfOneToTwoLines) {
    const std::vector<unsigned char> table = {
        entry(10, 2), 1, 2, entry(12, 1), 3, 4, entry(0, 1), 5, entry(11, 1), 6, 7};
    EXPECT_EQ(lines(table, 100, 5), (std::vector<std::uint32_t>{100, 100, 102, 102, 103}));
}

TEST(PythonLines, FollowTheLongFormsInBothDirections) {
    // 45 << 1 takes two pieces of 6 bits: 26 | 64, then 1.
    const std::vector<unsigned char> table = {entry(13, 1), 26 | 64, 1, entry(14, 1),
                                              10 << 1 | 1,  0,       1, 2};
    EXPECT_EQ(lines(table, 5, 2), (std::vector<std::uint32_t>{50, 40}));
}

TEST(PythonLines, AreUnknownWhereThereIsNone) {
    const std::vector<unsigned char> table = {entry(15, 1), entry(11, 1), 0, 0};
    EXPECT_EQ(lines(table, 7, 3), (std::vector<std::uint32_t>{0, 8, 0}));
    EXPECT_EQ(line_in_table(table.data(), 0, 7, 0), 0U);
}

TEST(PythonLines, BeginAtTheFirstLineBeforeTheFirstInstruction) {
    const std::vector<unsigned char> table = {entry(10, 1), 0, 0};
    EXPECT_EQ(line_in_table(table.data(), table.size(), 9, -1), 9U);
}

TEST(PythonLines, OfACutTableAreReadWithinIt) {
    const std::vector<unsigned char> table = {entry(13, 8), 127, 127, 127};
    // Each piece of the number adds 6 bits, the lowest of which is its sign.
    constexpr std::uint32_t first = 1'000'000;
    constexpr std::uint32_t back[] = {first, 0, 31, 2047, 131'071};
    for (std::size_t bytes = 0; bytes <= table.size(); ++bytes) {
        const std::vector<unsigned char> cut(table.begin(),
                                             table.begin() + static_cast<long>(bytes));
        EXPECT_EQ(line_in_table(cut.data(), cut.size(), first, 20), 0U) << bytes;
        EXPECT_EQ(line_in_table(cut.data(), cut.size(), first, 0), first - back[bytes]) << bytes;
    }
}

}  // namespace
}  // namespace tensorpool::platform::python
