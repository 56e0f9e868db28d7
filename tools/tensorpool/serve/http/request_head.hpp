#pragma once

/// @file
/// What is looked at before the HTTP library sees a request. The library is given the headers that
/// this server uses, each once, in printable ASCII, and nothing else: no ranges (which it matches
/// by a regular expression that recurses), no compressed or chunked bodies, no line without end.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "serve/http/limits.hpp"

namespace tensorpool::command::serve {

struct RequestHead {
    std::string text;            ///< first line and headers, with the empty line
    std::size_t body_bytes = 0;  ///< that follow
    bool keeps_connection = false;
};

/// A request that is answered without being looked at further; the connection closes.
struct Refusal {
    int status;
    std::string_view message;
};

/// `head` is all up to and with the empty line (RFC 9112, section 2.1).
std::variant<RequestHead, Refusal> read_head(std::string_view head, const Limits& limits);

}  // namespace tensorpool::command::serve
