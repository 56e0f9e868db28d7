#pragma once

#include <string>
#include <vector>

namespace tensorpool::command::model {

/// All files of a model that was split, this one among them, in their order:
/// "m-00001-of-00003.gguf" and so on. One that was not split: itself.
std::vector<std::string> files_of_model(const std::string& path);

}  // namespace tensorpool::command::model
