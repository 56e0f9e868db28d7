#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tensorpool::command::record {

/// Parses "10s", "500ms", "1.5min", "2h", or a plain number of seconds. Returns nothing for invalid
/// times and times of more than a year.
std::optional<std::chrono::nanoseconds> parse_time(std::string_view text);

/// A validator for CLI11: returns why the text is not a time, or "".
std::string problem_of_time(const std::string& text);

}  // namespace tensorpool::command::record
