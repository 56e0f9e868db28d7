#pragma once

/// @file
/// Formats times of traces, and converts names for other formats.

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorpool::command::inspect {

/// Returns a time such as "0", "812 ns", "1.23 us", "45.6 ms", "7.89 s" or "12 min".
std::string format_ns(std::uint64_t ns);
/// Returns the text with U+FFFD for invalid UTF-8.
std::string valid_utf8(std::string_view text);
/// Returns the text escaped for HTML text and attributes, with U+FFFD for invalid UTF-8 and control
/// characters.
std::string escape_html(std::string_view text);

}  // namespace tensorpool::command::inspect
