#pragma once

/// @file
/// Which photographs are processed, and where the results go.

#include <filesystem>
#include <string>
#include <vector>

namespace tensorpool::photos {

struct Picture {
    std::filesystem::path file;
    std::string result;  ///< the result's file name, unlike that of any other picture of the list
};

/// Where Debian's package mate-backgrounds puts its photographs of nature.
inline constexpr const char* nature_folder = "/usr/share/backgrounds/mate/nature";

/// The files named, and the JPEG files that lie in the folders named, by name; not those in folders
/// below. With nothing named, those of `nature_folder`. A file that is named stays in the list,
/// whatever it is. Throws std::runtime_error that says what to do when a folder cannot be read or
/// has no pictures.
std::vector<std::filesystem::path> find_pictures(const std::vector<std::string>& named);

/// Gives each file the name of its result: its own name with `.jpg`, and a number where two would
/// be the same. The same list gives the same names.
std::vector<Picture> with_result_names(const std::vector<std::filesystem::path>& files);

}  // namespace tensorpool::photos
