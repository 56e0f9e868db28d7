#pragma once

/// @file
/// Lines to standard output, at once.

#include <string_view>

namespace tensorpool::command {

/// Adds the end of the line. Throws CommandError where it cannot be written.
void print_line(std::string_view line);

}  // namespace tensorpool::command
