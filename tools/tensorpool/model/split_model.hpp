#pragma once

#include <string>
#include <vector>

namespace tensorpool::command::model {

/// Returns all files of a split model in order, including `path`: "m-00001-of-00003.gguf" and so
/// on. For a model that is not split, returns `path` only.
std::vector<std::string> files_of_model(const std::string& path);

}  // namespace tensorpool::command::model
