#pragma once

/// @file
/// Which files this process runs from: what was really loaded, whatever was asked for.

#include <string>
#include <string_view>

namespace tensorpool::photos {

/// The first file in /proc/self/maps whose name, folders aside, has `part` in it; empty when there
/// is none.
std::string mapped_file(std::string_view part);

}  // namespace tensorpool::photos
