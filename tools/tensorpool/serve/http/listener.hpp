#pragma once

#include "serve/http/listen_address.hpp"

namespace tensorpool::command::serve {

/// A listening socket.
class Listener {
public:
    /// Throws CommandError if the address is in use, or is not an address of this machine.
    explicit Listener(const ListenAddress& address);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    int socket() const noexcept { return socket_; }
    /// Returns the port, which the system chose if 0 was requested.
    int port() const;

private:
    int socket_;
};

}  // namespace tensorpool::command::serve
