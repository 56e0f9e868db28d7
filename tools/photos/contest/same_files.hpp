#pragma once

/// @file
/// Compares results.

#include <filesystem>

namespace tensorpool::photos {

/// Returns whether both files can be read and have equal contents. Reads in parts, so that the
/// memory of the comparing process stays small.
bool same_files(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace tensorpool::photos
