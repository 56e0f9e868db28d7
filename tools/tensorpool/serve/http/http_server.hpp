#pragma once

/// @file
/// Connections, with limits of time and size, on Boost.Asio.

#include <memory>

#include "serve/http/gate.hpp"

namespace tensorpool::command::serve {

/// One thread reads and writes all connections. A few others compute the answers, which may wait.
class HttpServer {
public:
    /// Called from several threads. May throw Refusal.
    using Answer = std::function<Response(const Request&)>;
    struct State;

    /// Listens, but does not answer before `run`. Throws CommandError if the address is in use, or
    /// is not an address of this machine.
    HttpServer(const ListenAddress& address, Answer answer, const Limits& limits = {});
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    int port() const;
    /// Answers requests until `stop` is called. Then no answer is under way.
    void run();
    /// Ends `run`, or makes it return at once. May be called from any thread.
    void stop();
    /// Sends what is new on all streams, or a comment, which keeps proxies from closing them and
    /// finds clients that have gone. May be called from any thread.
    void wake();

private:
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool::command::serve
