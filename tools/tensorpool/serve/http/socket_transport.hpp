#pragma once

#include <string>

#include "serve/http/transport.hpp"

namespace tensorpool::command::serve {

/// One connection, used by one thread at a time. Does not close the socket.
class SocketTransport final : public Transport {
public:
    SocketTransport(int socket, std::chrono::milliseconds write_time)
        : socket_(socket), write_time_(write_time) {}

    void set_deadline(Deadline deadline) override { deadline_ = deadline; }

    bool is_readable() const override { return true; }
    /// Returns false after the client has closed the connection.
    bool is_writable() const override;
    ssize_t read(char* bytes, std::size_t count) override;
    ssize_t write(const char* bytes, std::size_t count) override;
    void get_remote_ip_and_port(std::string& ip, int& port) const override;
    void get_local_ip_and_port(std::string& ip, int& port) const override;
    /// The library rejects sockets beyond the range of `select`. This class waits with `poll`, so
    /// it hides the number.
    socket_t socket() const override { return INVALID_SOCKET; }

private:
    int socket_;
    std::chrono::milliseconds write_time_;
    Deadline deadline_;
};

/// Ends the sending direction, then reads what still arrives for a moment. Closing a socket with
/// unread bytes would reset the connection, and the client could lose the answer.
void close_gently(int socket, std::chrono::milliseconds at_most);

}  // namespace tensorpool::command::serve
