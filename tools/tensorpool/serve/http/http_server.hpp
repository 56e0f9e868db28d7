#pragma once

/// @file
/// Adds connections, their threads, and limits of time and size (limits.hpp) to cpp-httplib, which
/// parses requests and writes answers. The loops of version 0.11.4, Debian 12's, have four defects.
/// A read has a deadline but a request has none, so a few slow clients block all others. A head may
/// have any size. Connections wait in an unbounded queue. The server ends if the system has no
/// descriptor or memory for another connection.

#include <httplib.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <set>

#include "serve/http/connection_threads.hpp"
#include "serve/http/head_reader.hpp"
#include "serve/http/limits.hpp"
#include "serve/http/listener.hpp"
#include "serve/http/site.hpp"

namespace tensorpool::command::serve {

/// The open connections, so that the server can end without waiting for its clients. All functions
/// may be called from any thread.
class OpenSockets {
public:
    /// Returns false if `shut_down` was called.
    bool add(int socket);
    void remove(int socket);
    void shut_down();

    /// Notes that the server waits for a request on this connection, and that it has ended.
    void begin_wait(int socket);
    void end_wait(int socket);
    /// Shuts down the connection on which the server has waited longest. Returns false if there is
    /// none.
    bool shut_down_longest_waiting();

private:
    std::mutex mutex_;
    std::set<int> sockets_;
    std::deque<int> waiting_;  ///< the longest wait first
    bool shut_down_ = false;
};

class HttpServer final : private httplib::Server {
public:
    /// `site` must outlive this object.
    HttpServer(Site& site, const Limits& limits);

    /// Answers connections until `stop` is called. To be called once.
    void run(const Listener& listener);
    /// Makes `run` return soon, or at once if it has not begun. May be called from any thread.
    void stop();

    /// Answers the requests of one connection. `socket` is -1 if it has none.
    void converse(Transport& transport, int socket = -1);

private:
    void set_handlers();
    bool begin(ConnectionThreads& threads, int socket);
    void serve(int socket);
    void turn_away(int socket) const;
    bool answer_next(HeadReader& reader, Transport& transport, int socket, bool last);
    bool answer(RequestHead head, HeadReader& reader, Transport& transport, bool last);
    void refuse(const Refusal& refusal, Transport& transport) const;

    Site& site_;
    Limits limits_;
    OpenSockets sockets_;
    std::atomic<bool> stopped_ = false;
};

}  // namespace tensorpool::command::serve
