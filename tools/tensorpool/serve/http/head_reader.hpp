#pragma once

/// @file
/// Separates the requests of one connection.

#include <string>
#include <variant>

#include "serve/http/request_head.hpp"
#include "serve/http/transport.hpp"

namespace tensorpool::command::serve {

/// The client sent no request, or no further one.
struct NoRequest {};

/// Used by one thread.
class HeadReader {
public:
    HeadReader(Transport& transport, const Limits& limits)
        : transport_(transport), limits_(limits) {}

    /// Returns the head of the next request. The whole request must arrive within
    /// `Limits::request`.
    std::variant<RequestHead, Refusal, NoRequest> next();
    /// Returns bytes that have arrived after the head, at most `bytes`.
    std::string take(std::size_t bytes);

private:
    bool read_more();

    Transport& transport_;
    const Limits& limits_;
    std::string buffer_;  ///< received, but not taken yet
};

}  // namespace tensorpool::command::serve
