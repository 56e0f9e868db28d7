#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tensorpool::command::record {

/// "10s", "500ms", "1.5min", "2h", or a plain number of seconds; nothing for what is none, or
/// beyond a year.
std::optional<std::chrono::nanoseconds> parse_time(std::string_view text);

/// For CLI11: why it is none, or "".
std::string problem_of_time(const std::string& text);

}  // namespace tensorpool::command::record
