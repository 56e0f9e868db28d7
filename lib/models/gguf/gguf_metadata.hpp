#pragma once

#include <cstdint>
#include <string_view>

#include <tensorpool/model_file.hpp>

#include "models/byte_reader.hpp"

namespace tensorpool::files {

/// Reads a string of GGUF: its length, then its bytes.
std::string_view read_gguf_string(ByteReader& in, Field length, Field text);

/// Reads a metadata value, preceded by its type. Arrays are checked, but not unpacked.
MetadataValue read_gguf_value(ByteReader& in);

}  // namespace tensorpool::files
