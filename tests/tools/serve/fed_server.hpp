#pragma once

/// @file
/// Any bytes as requests to the whole server, and what must hold whatever they are.

#include <cstdint>
#include <span>
#include <stdexcept>

namespace tensorpool::command::serve::testing {

class Mismatch : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The first byte chooses the server, with a token or without, and in what parts the others come.
/// Throws Mismatch where an answer is none, lacks the headers that protect the page, or shows a
/// figure to a request that cannot have known the token, or the server's name.
void feed_server(std::span<const std::uint8_t> bytes);

}  // namespace tensorpool::command::serve::testing
