#pragma once

/// @file
/// Texts that come from other processes, made fit for a terminal, and their width there.

#include <string>
#include <string_view>

namespace tensorpool::command {

/// Takes the character set from the environment. Without it only ASCII is shown as it is.
void use_locale();

/// `text` with a `?` for each character that is none, that a terminal would obey (control
/// characters, escapes) or that has no width of its own (marks that turn the direction of writing).
std::string printable(std::string_view text);

/// Columns that a printable text takes on a terminal.
std::size_t columns_of(std::string_view text);

enum class Side { left, right };
/// A printable text at that side of `columns` columns: filled up with spaces, or cut at its end.
std::string fit(std::string_view text, std::size_t columns, Side side = Side::left);

}  // namespace tensorpool::command
