#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::architecture {

inline constexpr std::string_view header_folder = "include/tensorpool/";

/// A line `#include "name"` or `#include <name>`.
struct Include {
    bool quoted;
    std::string name;
};

/// Returns the include on this line; nullopt if there is none.
std::optional<Include> include_of(const std::string& line);

/// Returns the sources and headers in a folder and its subfolders, as paths relative to `root`.
std::vector<std::string> sources_below(const std::filesystem::path& root, const char* folder);

/// Returns the project file that an include in `file` refers to, searched as a compiler does, as a
/// path relative to `root`. Returns nullopt if there is none.
std::optional<std::string> find_included(const std::filesystem::path& root, const std::string& file,
                                         const Include& include);

}  // namespace tensorpool::architecture
