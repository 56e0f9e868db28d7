#pragma once

/// What the codec of stashes is compared with. None of them has a checksum.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace perf {

/// A way to encode pieces of tensors of elements of some bytes.
struct Codec {
    std::string name;
    /// Returns the bytes written to `out`; 0 if the piece does not shrink, which is then stored.
    std::function<std::size_t(std::span<const std::byte> piece, std::span<std::byte> out)> encode;
    std::function<void(std::span<const std::byte> encoded, std::span<std::byte> piece)> decode;
};

/// Returns the rivals for elements of `element_bytes` bytes: zstd, LZ4, Blosc with its defaults and
/// with other compressors and shuffles, and, for floats of 4 bytes, zfp's lossless mode.
std::vector<Codec> stash_rivals(std::size_t element_bytes, bool is_float);

}  // namespace perf
