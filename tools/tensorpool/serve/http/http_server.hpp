#pragma once

/// @file
/// What stands around cpp-httplib, which parses requests and writes answers: connections, their
/// threads, and bounds in time and size (limits.hpp). In the loops of version 0.11.4, Debian 12's,
/// each read has a deadline but a request has none, so a few slow clients hold up everybody; a
/// head may be of any size; connections wait in a queue without a bound; and the server ends when
/// the system has no descriptor or memory for one more.

#include <httplib.h>

#include <atomic>
#include <mutex>
#include <set>

#include "serve/http/head_reader.hpp"
#include "serve/http/limits.hpp"
#include "serve/http/listener.hpp"
#include "serve/http/site.hpp"

namespace tensorpool::command::serve {

/// The connections that are open, so that the end of the server does not wait for their clients.
/// Any thread.
class OpenSockets {
public:
    /// False once `shut_down` was called.
    bool add(int socket);
    void remove(int socket);
    void shut_down();

private:
    std::mutex mutex_;
    std::set<int> sockets_;
    bool shut_down_ = false;
};

class HttpServer final : private httplib::Server {
public:
    /// `site` must outlive it.
    HttpServer(Site& site, const Limits& limits);

    /// Answers whoever connects, until `stop`. Once.
    void run(const Listener& listener);
    /// Any thread. `run` returns soon after, or at once when it begins.
    void stop();

    /// Answers the requests of one connection.
    void converse(Transport& transport);

private:
    void set_handlers();
    void serve(int socket);
    void turn_away(int socket) const;
    bool answer_next(HeadReader& reader, Transport& transport, bool last);
    bool answer(RequestHead head, HeadReader& reader, Transport& transport, bool last);
    void refuse(const Refusal& refusal, Transport& transport) const;

    Site& site_;
    Limits limits_;
    OpenSockets sockets_;
    std::atomic<bool> stopped_ = false;
};

}  // namespace tensorpool::command::serve
