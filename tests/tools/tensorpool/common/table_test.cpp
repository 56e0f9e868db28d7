#include "common/table.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command {
namespace {

Table three_rows() {
    Table table;
    table.columns = {{"NAME", Side::left}, {"SIZE", Side::right, 6}, {"COUNT"}};
    table.rows = {{{"b"}, {"20", 20}, {"7", 7}},
                  {{"a"}, {"100", 100}, {"7", 7}},
                  {{"a name of some length"}, {"3", 3}, {"7", 7}}};
    table.keys = {"b", "a", "long"};
    return table;
}

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
    const std::vector<std::string> lines = lay_out(three_rows(), 80);
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(lines[0], "NAME                    SIZE COUNT");
    EXPECT_EQ(lines[1], "b                         20     7");
}

TEST(Table, TheNameIsCutFirst) {
    const std::vector<std::string> lines = lay_out(three_rows(), 30);
    EXPECT_EQ(lines[3], "a name of some le      3     7");
    EXPECT_EQ(lines[0], "NAME                SIZE COUNT");
}

TEST(Table, ThenColumnsAreDroppedFromTheRight) {
    EXPECT_EQ(lay_out(three_rows(), 20).front(), "NAME            SIZE");
    EXPECT_EQ(lay_out(three_rows(), 5).front(), "NAME");
    for (std::size_t width = 1; width < 60; ++width) {
        for (const std::string& line : lay_out(three_rows(), width)) EXPECT_LE(line.size(), width);
    }
}

TEST(Table, NumbersAreSortedLargestFirst) {
    Table table = three_rows();
    sort_rows(table, 1, false);
    EXPECT_EQ(table.keys, (std::vector<std::string>{"a", "b", "long"}));
    sort_rows(table, 1, true);
    EXPECT_EQ(table.keys, (std::vector<std::string>{"long", "b", "a"}));
}

TEST(Table, TextsAreSortedAlphabetically) {
    Table table = three_rows();
    sort_rows(table, 0, false);
    EXPECT_EQ(table.keys, (std::vector<std::string>{"a", "long", "b"}));
}

TEST(Table, EqualRowsKeepTheirOrder) {
    Table table = three_rows();
    sort_rows(table, 2, false);
    EXPECT_EQ(table.keys, three_rows().keys);
    sort_rows(table, 2, true);
    EXPECT_EQ(table.keys, three_rows().keys);
}

TEST(Table, AMissingColumnSortsNothing) {
    Table table = three_rows();
    sort_rows(table, 9, false);
    EXPECT_EQ(table.keys, three_rows().keys);
}

}  // namespace
}  // namespace tensorpool::command
