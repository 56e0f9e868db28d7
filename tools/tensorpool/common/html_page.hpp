#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace tensorpool::command {

/// A self-contained HTML file.
struct HtmlPage {
    std::string text;
    /// Its Content-Security-Policy, which allows only its own style and script, in case a name in
    /// the data injects HTML.
    std::string policy;
};

/// Returns the embedded HTML file of this name (tools/dashboard/page) with its data.
HtmlPage html_page(std::string_view name, const nlohmann::ordered_json& data);

}  // namespace tensorpool::command
