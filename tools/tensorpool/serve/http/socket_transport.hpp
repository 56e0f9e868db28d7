#pragma once

#include <string>

#include "serve/http/transport.hpp"

namespace tensorpool::command::serve {

/// One connection; does not close it. One thread's at a time.
class SocketTransport final : public Transport {
public:
    SocketTransport(int socket, std::chrono::milliseconds write_time)
        : socket_(socket), write_time_(write_time) {}

    void set_deadline(Deadline deadline) override { deadline_ = deadline; }

    bool is_readable() const override { return true; }
    /// False once the client has gone.
    bool is_writable() const override;
    ssize_t read(char* bytes, std::size_t count) override;
    ssize_t write(const char* bytes, std::size_t count) override;
    void get_remote_ip_and_port(std::string& ip, int& port) const override;
    void get_local_ip_and_port(std::string& ip, int& port) const override;
    /// The library refuses what `select` could not wait for; here it is `poll` that waits.
    socket_t socket() const override { return INVALID_SOCKET; }

private:
    int socket_;
    std::chrono::milliseconds write_time_;
    Deadline deadline_;
};

/// Says that nothing more comes and takes what still arrives for a moment: were the socket closed
/// on bytes that nobody read, the client would lose the answer too.
void close_gently(int socket, std::chrono::milliseconds at_most);

}  // namespace tensorpool::command::serve
