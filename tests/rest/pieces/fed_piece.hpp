#pragma once

#include <cstddef>
#include <span>

namespace tensorpool::stashing::testing {

/// Gives arbitrary bytes to the codec of pieces. Throws std::logic_error if the codec violates a
/// promise: an encoding is decoded to exactly the bytes that were encoded, a damaged one never to
/// others, and what is decoded fills the piece. All memory lies beside inaccessible pages, so an
/// access outside of it ends the process.
///
/// The first byte selects how the others are used: as an encoding; as one whose header, sizes and
/// checksum are corrected, so that the code behind these checks is reached; or as a piece, which
/// may be repeated, and of whose encoding one bit is flipped. Returns whether an encoding was
/// decoded.
bool feed_piece(std::span<const std::byte> bytes);

}  // namespace tensorpool::stashing::testing
