#pragma once

/// @file
/// Takes the requests of one connection apart.

#include <string>
#include <variant>

#include "serve/http/request_head.hpp"
#include "serve/http/transport.hpp"

namespace tensorpool::command::serve {

/// Nothing came, or nothing more.
struct NoRequest {};

/// One thread's.
class HeadReader {
public:
    HeadReader(Transport& transport, const Limits& limits)
        : transport_(transport), limits_(limits) {}

    /// The next request's. All of that request must come before `Limits::request` is over.
    std::variant<RequestHead, Refusal, NoRequest> next();
    /// What has come behind the head, at most `bytes`.
    std::string take(std::size_t bytes);

private:
    bool read_more();

    Transport& transport_;
    const Limits& limits_;
    std::string buffer_;  ///< what has come and was not taken
};

}  // namespace tensorpool::command::serve
