#pragma once

#include "serve/http/listen_address.hpp"

namespace tensorpool::command::serve {

/// A socket that listens.
class Listener {
public:
    /// Throws CommandError: the address is taken, or not this machine's.
    explicit Listener(const ListenAddress& address);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    int socket() const noexcept { return socket_; }
    /// The one that the system chose where 0 was asked for.
    int port() const;

private:
    int socket_;
};

}  // namespace tensorpool::command::serve
