#pragma once

/// @file
/// Tables of values, laid out for a terminal.

#include <algorithm>
#include <numeric>

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
    std::vector<Column> columns = {};
    std::vector<std::vector<Cell>> rows = {};  ///< each row has as many cells as there are columns
    std::vector<std::string> keys = {};        ///< of each row: identifies it across updates
};

/// Wider than any terminal, so that piped output does not lose a column.
inline constexpr std::size_t any_width = 400;

inline constexpr std::size_t gap = 1;
inline constexpr std::size_t min_name = 12;

inline std::vector<std::size_t> widths_of(const Table& table) {
    std::vector<std::size_t> widths;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
        std::size_t widest =
            std::max(columns_of(table.columns[column].title), table.columns[column].min_width);
        for (const auto& row : table.rows) widest = std::max(widest, columns_of(row[column].text));
        widths.push_back(widest);
    }
    return widths;
}

inline std::size_t sum(const std::vector<std::size_t>& widths) {
    if (widths.empty()) return 0;
    return std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1));
}

inline std::vector<std::size_t> fitting_widths(const Table& table, std::size_t width) {
    std::vector<std::size_t> widths = widths_of(table);
    while (sum(widths) > width) {
        const std::size_t missing = sum(widths) - width;
        if (widths[0] >= min_name + missing) {
            widths[0] -= missing;
        } else if (widths.size() > 1) {
            widths.pop_back();
        } else {
            widths[0] = width;
        }
    }
    return widths;
}

template <class Text>
std::string line_of(const Table& table, const std::vector<std::size_t>& widths, Text&& text) {
    std::string line;
    for (std::size_t column = 0; column < widths.size(); ++column) {
        if (column > 0) line.append(gap, ' ');
        line += fit(text(column), widths[column], table.columns[column].side);
    }
    return line.erase(line.find_last_not_of(' ') + 1);
}

/// Sorts the rows by column `column`: the largest numbers first, texts in alphabetical order.
/// `inverted` reverses the order. Equal rows keep their order.
inline void sort_rows(Table& table, std::size_t column, bool inverted) {
    if (column >= table.columns.size()) return;
    std::vector<std::size_t> order(table.rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        const Cell& first = table.rows[inverted ? b : a][column];
        const Cell& second = table.rows[inverted ? a : b][column];
        if (first.value != second.value) return first.value > second.value;
        return table.columns[column].side == Side::left && first.text < second.text;
    });
    Table sorted{table.columns, {}, {}};
    for (const std::size_t row : order) {
        sorted.rows.push_back(std::move(table.rows[row]));
        if (!table.keys.empty()) sorted.keys.push_back(std::move(table.keys[row]));
    }
    table = std::move(sorted);
}

/// Returns a line for the titles, then one for each row, none wider than `width`. If the table is
/// too wide, the first column is cut first, then columns are dropped from the right.
inline std::vector<std::string> lay_out(const Table& table, std::size_t width) {
    const std::vector<std::size_t> widths = fitting_widths(table, width);
    std::vector<std::string> lines = {
        line_of(table, widths, [&](std::size_t column) { return table.columns[column].title; })};
    for (const auto& row : table.rows) {
        lines.push_back(
            line_of(table, widths, [&](std::size_t column) { return row[column].text; }));
    }
    return lines;
}

/// Returns the lines of `lay_out`, each with a newline.
inline std::string table_text(const Table& table, std::size_t width = any_width) {
    std::string text;
    for (const std::string& line : lay_out(table, width)) text += line + '\n';
    return text;
}

}  // namespace tensorpool::command
