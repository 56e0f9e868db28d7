#pragma once

/// @file
/// Writes lines to standard output and to standard error without delay.

#include <string_view>

namespace tensorpool::command {

/// Prints `line` and a newline, and flushes. Throws CommandError if standard output cannot be
/// written.
void print_line(std::string_view line);

/// Prints `line` and a newline to standard error. Does nothing if it cannot be written.
void print_error(std::string_view line) noexcept;

}  // namespace tensorpool::command
