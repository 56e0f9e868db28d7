#pragma once

#include <chrono>
#include <cstddef>

namespace tensorpool::command::serve {

/// What a client may ask of the server. Whoever wants more is cut off.
struct Limits {
    std::size_t connections = 64;
    std::size_t line_bytes = 4096;  ///< of a request, its first
    std::size_t head_bytes = 16384;
    std::size_t headers = 100;
    std::size_t body_bytes = 4096;
    std::size_t requests = 1000;  ///< of one connection

    std::chrono::milliseconds idle{15'000};     ///< before a request begins
    std::chrono::milliseconds request{10'000};  ///< for all of it, from its first byte on
    /// For each part of an answer: an event, or all of an answer that is not a stream.
    std::chrono::milliseconds write{10'000};
};

}  // namespace tensorpool::command::serve
