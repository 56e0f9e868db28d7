#pragma once

/// @file
/// Texts of figures that only traces have, and names made fit for other formats.

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorpool::command::inspect {

/// "0", "812 ns", "1.23 us", "45.6 ms", "7.89 s", "12 min".
std::string format_ns(std::uint64_t ns);
/// With U+FFFD for what is no UTF-8.
std::string valid_utf8(std::string_view text);
/// For the text and the attributes of HTML: valid, escaped, control characters as U+FFFD.
std::string escape_html(std::string_view text);

}  // namespace tensorpool::command::inspect
