#pragma once

/// @file
/// Encodes and decodes one piece of a tensor. Both allocate nothing, take no lock and make no
/// system call: a workspace holds all that they need, so a handler of page faults can use them.
///
/// A piece is bit-exact after decoding. Its encoding carries a checksum of the *decoded* bytes: it
/// covers the memory that holds the encoding, the decoders, and the merging of planes alike.

#include <tensorpool/data_type.hpp>

#include "rest/pieces/piece_workspace.hpp"

namespace tensorpool::stashing {

/// The size of a piece unless a caller has a reason for another one. Also the smallest size that is
/// worth its header and its tables.
inline constexpr std::size_t default_piece_bytes = std::size_t{64} << 10;
inline constexpr std::size_t max_piece_bytes = std::size_t{1} << 20;

std::size_t max_encoded_bytes(std::size_t piece_bytes) noexcept;

/// Encodes a piece of at least one byte and at most what the workspace is for. `type` selects how
/// it is divided into planes; any type is correct for any bytes. Returns the number of bytes
/// written to `out`, which must have room for `max_encoded_bytes(piece.size())`.
std::size_t encode_piece(std::span<const std::byte> piece, const DataType& type,
                         std::span<std::byte> out, PieceWorkspace& workspace) noexcept;

/// Decodes an encoding into `piece`, whose size must be that of the encoded piece. Returns false if
/// the encoding is damaged or belongs to a piece of another size; the content of `piece` is then
/// undefined. Reads and writes only the given ranges, whatever the bytes of the encoding are.
[[nodiscard]] bool decode_piece(std::span<const std::byte> encoded, std::span<std::byte> piece,
                                PieceWorkspace& workspace) noexcept;

}  // namespace tensorpool::stashing
