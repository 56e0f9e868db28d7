#include "serve/http/socket_transport.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tensorpool::command::serve {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns false if the events did not occur before the deadline.
bool wait_for(int socket, short events, Clock::time_point deadline) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd wanted{socket, events, 0};
        const int ready = poll(&wanted, 1, static_cast<int>(std::max<long>(left.count(), 0)));
        if (ready > 0) return true;
        if (ready == 0 || errno != EINTR) return false;
    }
}

bool is_passing(int error) {
    return error == EINTR || error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

bool SocketTransport::is_writable() const {
    pollfd gone{socket_, POLLRDHUP, 0};
    return poll(&gone, 1, 0) == 0;
}

ssize_t SocketTransport::read(char* bytes, std::size_t count) {
    while (wait_for(socket_, POLLIN, deadline_)) {
        const ssize_t got = recv(socket_, bytes, count, MSG_DONTWAIT);
        if (got >= 0 || !is_passing(errno)) return got;
    }
    return -1;
}

ssize_t SocketTransport::write(const char* bytes, std::size_t count) {
    const Deadline deadline = Clock::now() + write_time_;
    std::size_t sent = 0;
    while (sent < count) {
        if (!wait_for(socket_, POLLOUT, deadline)) return -1;
        const ssize_t part = send(socket_, bytes + sent, count - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (part < 0 && !is_passing(errno)) return -1;
        if (part > 0) sent += static_cast<std::size_t>(part);
    }
    return static_cast<ssize_t>(sent);
}

// The server does not use client addresses.
void SocketTransport::get_remote_ip_and_port(std::string&, int&) const {}
void SocketTransport::get_local_ip_and_port(std::string&, int&) const {}

void close_gently(int socket, std::chrono::milliseconds at_most) {
    constexpr std::size_t max_bytes = 256 * 1024;
    shutdown(socket, SHUT_WR);
    const Clock::time_point deadline = Clock::now() + at_most;
    char bytes[4096];
    for (std::size_t got = 0; got < max_bytes && wait_for(socket, POLLIN, deadline);) {
        const ssize_t part = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
        if (part <= 0) break;
        got += static_cast<std::size_t>(part);
    }
    close(socket);
}

}  // namespace tensorpool::command::serve
