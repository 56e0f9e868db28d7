#pragma once

/// @file
/// Validates the head of a request before the HTTP library sees it. The library receives only the
/// headers that this server uses, each once, in printable ASCII. It receives no ranges (which it
/// matches with a recursive regular expression), no compressed or chunked bodies, and no endless
/// lines.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "serve/http/limits.hpp"

namespace tensorpool::command::serve {

struct RequestHead {
    std::string text;            ///< first line and headers, including the empty line
    std::size_t body_bytes = 0;  ///< size of the body
    bool keeps_connection = false;
};

/// A request that is rejected without further processing; the connection is closed.
struct Refusal {
    int status;
    std::string_view message;
};

/// Parses a head. `head` includes the empty line at its end (RFC 9112, section 2.1).
std::variant<RequestHead, Refusal> read_head(std::string_view head, const Limits& limits);

}  // namespace tensorpool::command::serve
