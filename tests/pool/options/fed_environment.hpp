#pragma once

#include <cstdint>
#include <span>

namespace tensorpool::testing {

/// Gives arbitrary texts to the environment variables of the library, and reads them.
///
/// The bytes are a sequence of a variable's number and its text, which ends with a byte of 0.
/// Throws std::logic_error unless each invalid text causes one line on stderr, each valid one none,
/// and an invalid text reads like a variable that is not set. What is valid is decided here by
/// other means than the readers'. The process has no environment variables during the call. Not
/// thread-safe.
///
/// Left out are the variables of the recorder, which reads them once in a process.
void feed_environment(std::span<const std::uint8_t> bytes);

}  // namespace tensorpool::testing
