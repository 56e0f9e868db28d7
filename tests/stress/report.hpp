#pragma once

#include <string_view>

namespace tensorpool::stress {

/// Sets the exit code for a fault that is found: 0 if `name` is a planted fault, 1 if it is empty.
void expect_planted_fault(std::string_view name);
/// Prints what is wrong, formatted as by printf, and ends the process.
[[noreturn, gnu::format(printf, 1, 2)]] void found(const char* format, ...);

}  // namespace tensorpool::stress
