#pragma once

/// @file
/// Whether results are the same.

#include <filesystem>

namespace tensorpool::photos {

/// True when both can be read and hold the same bytes. Reads a part at a time, so that the
/// driver's memory stays small.
bool same_files(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace tensorpool::photos
