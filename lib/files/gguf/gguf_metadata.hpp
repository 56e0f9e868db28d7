#pragma once

#include <cstdint>
#include <string_view>

#include <tensorpool/model_file.hpp>

#include "files/byte_reader.hpp"

namespace tensorpool::files {

/// A string of GGUF: its length, then its bytes.
std::string_view read_gguf_string(ByteReader& in, Field length, Field text);

/// A value of metadata, and before it its type. Arrays are walked, not unpacked.
MetadataValue read_gguf_value(ByteReader& in);

}  // namespace tensorpool::files
