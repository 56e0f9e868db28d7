#include "models/safetensors/tensors.hpp"

namespace tensorpool::files {

void read_safetensors_header(std::string_view, std::uint64_t offset, ModelContents& to,
                             SafetensorsTensors&) {
    throw ModelFileError(
        to.name, "header", offset,
        "found JSON, which this build of tensorpool cannot read; expected one that "
        "was built with nlohmann-json (Debian package nlohmann-json3-dev)");
}

}  // namespace tensorpool::files
