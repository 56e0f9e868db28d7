#pragma once

#include <string_view>

namespace tensorpool::command::profile {

/// Returns flame_graph.html with its style and script, as of the configuration of the project.
std::string_view flame_graph_page() noexcept;
/// Returns the SHA-256 of the style in hexadecimal, by which the page's policy allows it.
std::string_view flame_graph_style_sha256() noexcept;
/// Returns the SHA-256 of the script in hexadecimal, by which the page's policy allows it.
std::string_view flame_graph_script_sha256() noexcept;

}  // namespace tensorpool::command::profile
