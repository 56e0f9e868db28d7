#pragma once

#include "models/safetensors/tensors.hpp"

namespace tensorpool::files {

/// Reads the header, which is JSON and begins at byte `offset` of the file. Its tensors go to
/// `tensors`, its metadata to `to`. A build without the JSON library has another definition, which
/// throws.
void read_safetensors_header(std::string_view header, std::uint64_t offset, ModelContents& to,
                             SafetensorsTensors& tensors);

}  // namespace tensorpool::files
