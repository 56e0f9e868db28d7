#pragma once

#include <cstddef>
#include <span>

namespace tensorpool::planned::testing {

/// Reads arbitrary bytes as a plan file. Throws std::logic_error if the reader violates a promise:
/// what it returns is a valid plan that is written back to the same bytes, and what it rejects, it
/// rejects with one short line.
///
/// The first byte selects how the others are used: as the whole file; as a file whose magic,
/// numbers and checksums are corrected first, so that the code behind these checks is reached; or
/// as a short description of buffers, from which a file is made. Returns whether a plan was read.
bool feed_plan(std::span<const std::byte> bytes);

}  // namespace tensorpool::planned::testing
