#pragma once

#include <cstdint>
#include <string_view>

#include "models/byte_reader.hpp"
#include "models/model_contents.hpp"

namespace tensorpool::files {

/// Reads an array that begins at `in`'s position and must end where `in` ends, as the tensor
/// `name`. Returns the version of the format.
std::uint32_t read_npy_array(ByteReader& in, std::string_view name, ModelContents& to);

}  // namespace tensorpool::files
