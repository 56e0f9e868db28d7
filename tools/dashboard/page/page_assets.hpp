#pragma once

/// @file
/// The dashboard's page, embedded at build time: files to serve as they are. They hold no figures,
/// and the page itself asks for the token: serve them to everybody.

#include <span>
#include <string_view>

namespace tensorpool::page {

struct Asset {
    std::string_view path;  ///< what a browser asks for: "/" is the page
    std::string_view type;  ///< for Content-Type, with its charset
    std::string_view content;
};

/// All of them, in no order; they live as long as the program.
std::span<const Asset> assets() noexcept;

}  // namespace tensorpool::page
