#pragma once

/// @file
/// Cells and columns for tables of statistics.

#include "common/table.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

// The widths below fit the usual values of each kind.
inline Column size_column(const char* title) {
    return {title, Side::right, 8};
}
inline Column count_column(const char* title) {
    return {title, Side::right, 6};
}
inline Column part_column(const char* title) {
    return {title, Side::right, 5};
}
inline Column text_column(const char* title, std::size_t min_width = 0) {
    return {title, Side::left, min_width};
}

inline Cell text_cell(std::string_view text) {
    return {printable(text), 0};
}
inline Cell size_cell(std::uint64_t bytes, Sizes sizes) {
    return {format_size(bytes, sizes), static_cast<double>(bytes)};
}
inline Cell growth_cell(std::int64_t bytes, Sizes sizes) {
    return {format_growth(bytes, sizes), static_cast<double>(bytes)};
}
/// A limit. 0 means no limit and sorts above all others.
inline Cell limit_cell(std::uint64_t bytes, Sizes sizes) {
    return bytes == 0 ? Cell{"none", 1e20} : size_cell(bytes, sizes);
}
inline Cell count_cell(double count) {
    return {format_count(count), count};
}
inline Cell count_cell(std::uint64_t count) {
    return count_cell(static_cast<double>(count));
}
inline Cell part_cell(double part) {
    return {format_part(part), part};
}
/// A fraction of a whole, or "-" if the whole is 0.
inline Cell part_cell(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return {"-", 0};
    return part_cell(static_cast<double>(part) / static_cast<double>(whole));
}
/// A number that identifies something, printed without a unit.
inline Cell number_cell(std::uint64_t number) {
    return {std::to_string(number), static_cast<double>(number)};
}

}  // namespace tensorpool::command
