#include "models/estimate/config/config.hpp"

namespace tensorpool::files {

std::unique_ptr<HyperparameterSource> read_config_file(const std::string& path) {
    throw HyperparameterError(
        path +
        ": is JSON, which this build of tensorpool cannot read; expected one that was built with "
        "nlohmann-json (Debian package nlohmann-json3-dev)");
}

}  // namespace tensorpool::files
