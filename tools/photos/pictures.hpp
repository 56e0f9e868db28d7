#pragma once

/// @file
/// Chooses the photographs to process, and the names of the results.

#include <filesystem>
#include <string>
#include <vector>

namespace tensorpool::photos {

struct Picture {
    std::filesystem::path file;
    std::string result;  ///< the file name of the result, unique within the list
};

/// The folder of nature photographs of Debian's package mate-backgrounds.
inline constexpr const char* nature_folder = "/usr/share/backgrounds/mate/nature";

/// Returns the named files, and the JPEG files in the named folders in alphabetical order, without
/// subfolders. If nothing is named, uses `nature_folder`. A named file is kept in the list,
/// whatever its type. Throws std::runtime_error with advice if a folder cannot be read or has no
/// pictures.
std::vector<std::filesystem::path> find_pictures(const std::vector<std::string>& named);

/// Gives each file the name of its result: its own name with `.jpg`, and a number if two would be
/// equal. The same list gives the same names.
std::vector<Picture> with_result_names(const std::vector<std::filesystem::path>& files);

}  // namespace tensorpool::photos
