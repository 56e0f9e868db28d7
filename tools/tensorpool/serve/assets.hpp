#pragma once

#include <optional>
#include <string_view>

namespace tensorpool::command::serve {

/// A file of the page.
struct Asset {
    std::string_view type;
    std::string_view content;
};

/// By its path; "/" is the page. Without npm the command is built without them, and "/" says so.
std::optional<Asset> find_asset(std::string_view path);

}  // namespace tensorpool::command::serve
