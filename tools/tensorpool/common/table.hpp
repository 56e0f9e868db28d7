#pragma once

/// @file
/// Tables of values, laid out for a terminal.

#include "common/printable.hpp"

namespace tensorpool::command {

struct Column {
    std::string title;
    Side side = Side::right;
    std::size_t min_width = 0;  ///< minimum width, so that changing values do not move the columns
};

/// The text of a cell, and the number it is sorted by (0 for text).
struct Cell {
    std::string text;
    double value = 0;
};

struct Table {
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows;  ///< each row has as many cells as there are columns
    std::vector<std::string> keys;        ///< of each row: identifies it across updates
};

/// Sorts the rows by column `column`: the largest numbers first, texts in alphabetical order.
/// `inverted` reverses the order. Equal rows keep their order.
void sort_rows(Table& table, std::size_t column, bool inverted);

/// Returns a line for the titles, then one for each row, none wider than `width`. If the table is
/// too wide, the first column is cut first, then columns are dropped from the right.
std::vector<std::string> lay_out(const Table& table, std::size_t width);

/// Wider than any terminal, so that piped output does not lose a column.
inline constexpr std::size_t any_width = 400;
/// Returns the lines of `lay_out`, each with a newline.
std::string table_text(const Table& table, std::size_t width = any_width);

/// How many of the columns `lay_out` shows at this width.
std::size_t shown_columns(const Table& table, std::size_t width);

}  // namespace tensorpool::command
