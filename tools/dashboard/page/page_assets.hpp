#pragma once

/// @file
/// The dashboard's page, embedded at build time as files to be served unchanged. They contain no
/// statistics, and the page itself prompts for the token, so they can be served to all clients.

#include <span>
#include <string_view>

namespace tensorpool::page {

struct Asset {
    std::string_view path;  ///< the path in the URL; "/" is the page
    std::string_view type;  ///< the Content-Type, with its charset
    std::string_view content;
};

/// Returns all assets, in no particular order. They are valid until the program ends.
std::span<const Asset> assets() noexcept;

}  // namespace tensorpool::page
