#pragma once

#include <cstdint>

#include "rest/pieces/piece_workspace.hpp"

namespace tensorpool::stashing {

/// How a plane is stored.
enum class Coding : std::uint8_t {
    raw,       ///< its bytes
    constant,  ///< one byte, which all are
    lz4,       ///< a block of LZ4
    zstd,      ///< a frame of zstd
};

/// What the encoder of a plane is to do.
enum class Effort : std::uint8_t {
    raw,
    lz4,
    entropy,       ///< zstd without a search for repetitions
    matches,       ///< zstd with one
    fast_matches,  ///< zstd with one, and without an entropy coder for other bytes
};

struct EncodedPlane {
    Coding coding;
    std::size_t bytes;
};

/// Encodes a plane into `out`, which must have room for the plane. A plane whose bytes are equal
/// becomes constant, and one that does not shrink stays raw, whatever the effort.
EncodedPlane encode_plane(std::span<const std::byte> plane, Effort effort, std::byte* out,
                          PieceWorkspace& workspace) noexcept;

/// Decodes a plane into `plane`. Returns false unless it has exactly this size.
[[nodiscard]] bool decode_plane(std::span<const std::byte> encoded, Coding coding,
                                std::span<std::byte> plane, PieceWorkspace& workspace) noexcept;

}  // namespace tensorpool::stashing
