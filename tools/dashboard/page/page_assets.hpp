#pragma once

/// @file
/// What browsers show, embedded at build time: the dashboard's page as files to be served
/// unchanged, and the HTML files of reports. They contain no statistics, and the page itself
/// prompts for the token, so they can be served to all clients.

#include <string_view>

namespace tensorpool::page {

struct Asset {
    std::string_view
        path;  ///< the path in the URL, "/" is the page; or the name of a report's file
    std::string_view type;  ///< the Content-Type, with its charset
    std::string_view content;
};

/// Returns the asset of this path; null if there is none. It is valid until the program ends.
const Asset* find(std::string_view path) noexcept;

}  // namespace tensorpool::page
