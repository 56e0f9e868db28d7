#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensorpool::command::run {

/// Parses "4096", "64KiB" or "1.5GiB", the sizes of the environment variables. Returns nothing for
/// invalid sizes and sizes below one byte.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// A validator for CLI11: returns why the text is not a size, or "".
std::string problem_of_size(const std::string& text);

}  // namespace tensorpool::command::run
