#include "serve/http/listener.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/settings.hpp"

namespace tensorpool::command::serve {
namespace {

const char* what_helps(int error) {
    switch (error) {
        case EADDRINUSE:
            return "; another program uses this port: end it, or choose another port with --listen";
        case EADDRNOTAVAIL:
            return "; this machine does not have the address";
        case EACCES:
            return "; ports below 1024 need administrator rights";
        default:
            return "";
    }
}

[[noreturn]] void fail(const ListenAddress& address, int error) {
    throw CommandError(finding, fmt::format("serve: cannot listen on {}: {}{}",
                                            with_port(address.name, address.port),
                                            std::strerror(error), what_helps(error)));
}

/// With SO_REUSEADDR, a port whose last connections are still closing can be used. Without
/// SO_REUSEPORT, a port with another listener cannot.
bool start_listening(int socket, const ListenAddress& address) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const auto* where = reinterpret_cast<const sockaddr*>(&address.socket_address);
    return bind(socket, where, address.socket_address_bytes) == 0 && listen(socket, 128) == 0;
}

}  // namespace

Listener::Listener(const ListenAddress& address)
    : socket_(::socket(address.socket_address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (socket_ < 0) fail(address, errno);
    if (start_listening(socket_, address)) return;
    const int error = errno;
    close(socket_);
    fail(address, error);
}

Listener::~Listener() {
    close(socket_);
}

int Listener::port() const {
    sockaddr_storage address = {};
    socklen_t bytes = sizeof address;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes);
    const in_port_t port = address.ss_family == AF_INET
                               ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                               : reinterpret_cast<const sockaddr_in6&>(address).sin6_port;
    return ntohs(port);
}

}  // namespace tensorpool::command::serve
