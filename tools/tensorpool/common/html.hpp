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

struct HtmlPage {
    std::string text;
    /// Its Content-Security-Policy, which allows only its own style and script, in case a name in
    /// the data injects HTML.
    std::string policy;
};

/// Returns the embedded HTML file of this name (tools/dashboard/page) with its data.
HtmlPage html_page(std::string_view name, const nlohmann::ordered_json& data);

}  // namespace tensorpool::command
