#pragma once

#include <memory>

#include "models/estimate/hyperparameter_source.hpp"

namespace tensorpool::files {

/// Reads the config.json of a model. Throws HyperparameterError if the file cannot be read or is
/// not a JSON object, and in a build without nlohmann-json.
std::unique_ptr<HyperparameterSource> read_config_file(const std::string& path);

}  // namespace tensorpool::files
