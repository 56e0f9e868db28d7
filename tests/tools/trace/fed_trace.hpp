#pragma once

#include <cstddef>
#include <span>

namespace tensorpool::command::trace::testing {

/// Reads any bytes as a recording, and tells its lives. By the first byte, which is no part of it:
/// as they are (even), or with what each chunk's header begins and ends with put right, so that
/// what lies behind that is reached too (odd). An error of the reader's own kind is an answer.
/// Throws std::logic_error where a recording holds what its reader promises not to be.
void feed_trace(std::span<const std::byte> bytes);

}  // namespace tensorpool::command::trace::testing
