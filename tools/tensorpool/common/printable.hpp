#pragma once

/// @file
/// Makes texts from other processes safe for a terminal, and measures their width there.

#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::command {

/// Sets the character set from the environment. Without it, `printable` shows only ASCII
/// characters.
void use_locale();

/// Returns `text` with a `?` for each byte that is not valid in the character set, each character
/// that a terminal would interpret (control characters, escapes), and each character without a
/// width of its own (such as marks that change the direction of writing).
std::string printable(std::string_view text);

/// The number of columns that a printable text takes on a terminal.
std::size_t columns_of(std::string_view text);

enum class Side { left, right };
/// Aligns a printable text to that side of `columns` columns: padded with spaces, or cut at its
/// end.
std::string fit(std::string_view text, std::size_t columns, Side side = Side::left);

/// Breaks a text into lines of at most `columns` columns. A single longer word makes a longer line.
std::vector<std::string> wrap(std::string_view text, std::size_t columns);

}  // namespace tensorpool::command
