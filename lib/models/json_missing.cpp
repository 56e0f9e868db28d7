#include "models/estimate/hyperparameter_source.hpp"
#include "models/safetensors/tensors.hpp"

/// @file
/// What a build without nlohmann-json has in place of the readers of JSON.

namespace tensorpool::files {

void read_safetensors_header(std::string_view, std::uint64_t offset, ModelContents& to,
                             SafetensorsTensors&) {
    throw ModelFileError(
        to.name, "header", offset,
        "found JSON, which this build of tensorpool cannot read; expected one that "
        "was built with nlohmann-json (Debian package nlohmann-json3-dev)");
}

std::unique_ptr<HyperparameterSource> read_config_file(const std::string& path) {
    throw HyperparameterError(
        path +
        ": is JSON, which this build of tensorpool cannot read; expected one that was built with "
        "nlohmann-json (Debian package nlohmann-json3-dev)");
}

}  // namespace tensorpool::files
