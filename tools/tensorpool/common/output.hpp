#pragma once

/// @file
/// Writes lines to standard output without delay.

#include <string_view>

namespace tensorpool::command {

/// Prints `line` and a newline, and flushes. Throws CommandError if standard output cannot be
/// written.
void print_line(std::string_view line);

}  // namespace tensorpool::command
