#pragma once

/// @file
/// The names of a key-value cache's element types, for the command line.

#include <string>

namespace tensorpool::command::model {

/// Returns all names: "f32, f16, …".
std::string cache_type_names();
/// Returns an error message if there is no type of this name, else "". A validator for CLI11.
std::string problem_of_cache_type(const std::string& name);

}  // namespace tensorpool::command::model
