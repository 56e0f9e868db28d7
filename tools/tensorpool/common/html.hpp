#pragma once

/// @file
/// Makes texts of other processes and files safe for JSON and HTML.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace tensorpool::command {

/// Returns one line of JSON, with U+FFFD for invalid UTF-8.
std::string json_line(const nlohmann::ordered_json& json);
/// Returns the text with U+FFFD for invalid UTF-8.
std::string valid_utf8(std::string_view text);
/// Returns the text escaped for HTML text and attributes, with U+FFFD for invalid UTF-8 and control
/// characters.
std::string escape_html(std::string_view text);
/// Converts bytes from hexadecimal digits to base 64 with padding, the form of digests in a
/// Content-Security-Policy.
std::string base64_of_hex(std::string_view hex);

}  // namespace tensorpool::command
