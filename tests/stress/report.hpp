#pragma once

#include <string_view>

namespace tensorpool::stress {

/// What a fault that is found ends the process with: 1, or 0 when it was planted.
void expect_planted_fault(std::string_view name);
/// Says what is wrong, as printf does, and ends the process.
[[noreturn, gnu::format(printf, 1, 2)]] void found(const char* format, ...);

}  // namespace tensorpool::stress
