#pragma once

#include <cstdint>
#include <string_view>

#include "files/model_contents.hpp"
#include "files/safetensors/tensors.hpp"

namespace tensorpool::files {

/// Reads the header, which is JSON and begins at byte `offset` of the file: its tensors go to
/// `tensors`, its metadata to `to`. Without the library for JSON there is another of this name,
/// which says so.
void read_safetensors_header(std::string_view header, std::uint64_t offset, ModelContents& to,
                             SafetensorsTensors& tensors);

}  // namespace tensorpool::files
