#pragma once

#include <cstdint>
#include <string_view>

#include "files/byte_reader.hpp"
#include "files/model_contents.hpp"

namespace tensorpool::files {

/// Reads an array, which begins at `in`'s position and is to end where `in` does, as the tensor
/// `name`. Returns its format's version.
std::uint32_t read_npy_array(ByteReader& in, std::string_view name, ModelContents& to);

}  // namespace tensorpool::files
