#pragma once

#include <chrono>
#include <cstddef>

namespace tensorpool::command::serve {

/// The limits for clients. Connections that exceed them are closed.
struct Limits {
    std::size_t connections = 64;
    std::size_t line_bytes = 4096;  ///< of the first line of a request
    std::size_t head_bytes = 16384;
    std::size_t headers = 100;
    std::size_t body_bytes = 4096;
    std::size_t requests = 1000;  ///< on one connection

    std::chrono::milliseconds idle{15'000};     ///< before a request begins
    std::chrono::milliseconds request{10'000};  ///< for a whole request, from its first byte
    /// For each part of an answer: one event of a stream, or the whole of any other answer.
    std::chrono::milliseconds write{10'000};
};

}  // namespace tensorpool::command::serve
