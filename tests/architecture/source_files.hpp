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

/// The include that a line is; nothing where it is none.
std::optional<Include> include_of(const std::string& line);

/// Sources and headers in a folder below the root and in its folders, as paths below the root.
std::vector<std::string> sources_below(const std::filesystem::path& root, const char* folder);

/// The file of the project that an include in `file` means, as a compiler searches for it, as a
/// path below the root; nothing where there is none.
std::optional<std::string> find_included(const std::filesystem::path& root, const std::string& file,
                                         const Include& include);

}  // namespace tensorpool::architecture
