#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensorpool::command::run {

/// "4096", "64KiB", "1.5GiB", as the variables of the environment have sizes; nothing for what is
/// none, or less than a byte.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// For CLI11: why it is none, or "".
std::string problem_of_size(const std::string& text);

}  // namespace tensorpool::command::run
