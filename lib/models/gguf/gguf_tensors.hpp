#pragma once

#include <cstdint>

#include "models/byte_reader.hpp"
#include "models/model_contents.hpp"

namespace tensorpool::files {

/// The least that the description of a tensor takes: the length of its name, a number of
/// dimensions, a type, and an offset.
inline constexpr std::uint64_t min_gguf_tensor_bytes = 8 + 4 + 4 + 8;

/// Reads the descriptions of `count` tensors at `in`'s position, and computes the positions of the
/// tensors in the data that follows.
void read_gguf_tensors(ByteReader& in, std::uint64_t count, std::uint64_t alignment,
                       ModelContents& to);

}  // namespace tensorpool::files
