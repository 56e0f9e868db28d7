#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "serve/http/messages.hpp"

namespace tensorpool::command::serve {

/// The limits for clients. Connections that exceed them are closed.
struct Limits {
    std::size_t connections = 80;
    /// Less than the number of connections, so that open pages, read or not, leave some of them for
    /// other requests.
    std::size_t streams = 64;
    std::size_t line_bytes = 4096;  ///< of the first line of a request
    std::size_t head_bytes = 16384;
    std::size_t headers = 100;
    std::size_t body_bytes = 4096;

    std::chrono::milliseconds idle{15'000};     ///< before a request begins
    std::chrono::milliseconds request{10'000};  ///< for a whole request, from its first byte
    /// For each part of an answer: the events of one round, or the whole of any other answer.
    std::chrono::milliseconds write{10'000};
};

/// Parses a head, which includes the empty line at its end (RFC 9112, section 2.1). Throws Refusal.
/// The headers that this server uses may occur once each, in printable ASCII.
Request read_head(std::string_view head, const Limits& limits);

}  // namespace tensorpool::command::serve
