#pragma once

#include <cstddef>
#include <span>

namespace tensorpool::command::trace::testing {

/// Reads arbitrary bytes as a recording and finds its lifetimes. The first byte is not part of the
/// recording. If it is even, the bytes are read unchanged. If it is odd, the magic number and the
/// check of each chunk header are corrected first, so that the code behind these checks is reached
/// too. CommandError is a valid outcome. Throws std::logic_error if a recording violates a promise
/// of its reader.
void feed_trace(std::span<const std::byte> bytes);

}  // namespace tensorpool::command::trace::testing
