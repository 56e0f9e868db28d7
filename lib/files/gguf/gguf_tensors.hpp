#pragma once

#include <cstdint>

#include "files/byte_reader.hpp"
#include "files/model_contents.hpp"

namespace tensorpool::files {

/// What the description of a tensor takes at least: a name's length, a number of dimensions, a
/// type, an offset.
inline constexpr std::uint64_t min_gguf_tensor_bytes = 8 + 4 + 4 + 8;

/// Reads the descriptions of `count` tensors, which stand at `in`'s position, and finds their
/// places in the data behind them.
void read_gguf_tensors(ByteReader& in, std::uint64_t count, std::uint64_t alignment,
                       ModelContents& to);

}  // namespace tensorpool::files
