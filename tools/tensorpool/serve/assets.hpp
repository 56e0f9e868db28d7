#pragma once

#include <optional>
#include <string_view>

namespace tensorpool::command::serve {

/// A file of the page: its content type and its content.
struct Asset {
    std::string_view type;
    std::string_view content;
};

/// Returns the file at a path; "/" is the page. If the command was built without npm, there is only
/// "/", which says so.
std::optional<Asset> find_asset(std::string_view path);

}  // namespace tensorpool::command::serve
