#pragma once

/// @file
/// Feeds arbitrary bytes to the complete server, and checks what must hold for all of them.

#include <cstdint>
#include <span>
#include <stdexcept>

namespace tensorpool::command::serve::testing {

class Mismatch : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The first byte selects a server with or without a token, and the sizes of the parts in which the
/// other bytes arrive. Throws Mismatch if an answer is malformed, lacks the headers that protect
/// the page, or shows statistics to a request without the token or the server's name.
void feed_server(std::span<const std::uint8_t> bytes);

}  // namespace tensorpool::command::serve::testing
