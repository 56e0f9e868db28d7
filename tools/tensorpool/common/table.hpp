#pragma once

/// @file
/// Tables of figures, laid out for a terminal.

#include <string>
#include <vector>

#include "common/printable.hpp"

namespace tensorpool::command {

struct Column {
    std::string title;
    Side side = Side::right;
    std::size_t least = 0;  ///< columns that it takes at least, so that live figures do not jump
};

/// What is shown, and what it is sorted by where it is a number.
struct Cell {
    std::string text;
    double value = 0;
};

struct Table {
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows;  ///< as many cells as columns
    std::vector<std::string> keys;        ///< of each row: what stays the same from look to look
};

/// By column `column`: the largest numbers first, texts by the alphabet; inverted, the other way.
/// Rows that are alike keep their order.
void sort_rows(Table& table, std::size_t column, bool inverted);

/// A line for the titles, then one for each row, none wider than `width`. Where that is too
/// narrow the first column gives way first, then columns from the right are left out.
std::vector<std::string> lay_out(const Table& table, std::size_t width);

/// How many of the columns `lay_out` shows.
std::size_t shown_columns(const Table& table, std::size_t width);

}  // namespace tensorpool::command
