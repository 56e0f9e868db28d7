#include "socket_client.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace tensorpool::command::serve::testing {
namespace {

constexpr int patience_ms = 30'000;

}  // namespace

SocketClient::SocketClient(int port, int receive_buffer_bytes)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer_bytes != 0) {
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                   sizeof receive_buffer_bytes);
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<in_port_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int at_once = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        throw std::runtime_error("cannot connect to port " + std::to_string(port));
    }
}

SocketClient::~SocketClient() {
    if (socket_ >= 0) close(socket_);
}

SocketClient::SocketClient(SocketClient&& other) noexcept
    : socket_(other.socket_), received_(std::move(other.received_)) {
    other.socket_ = -1;
}

bool SocketClient::send(const std::string& bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
}

void SocketClient::end_sending() {
    shutdown(socket_, SHUT_WR);
}

bool SocketClient::has_answer(int milliseconds) const {
    pollfd wanted{socket_, POLLIN, 0};
    return poll(&wanted, 1, milliseconds) > 0;
}

const std::string& SocketClient::receive_until(
    const std::function<bool(const std::string&)>& enough) {
    char bytes[4096];
    while (!enough(received_)) {
        if (!has_answer(patience_ms)) throw std::runtime_error("no answer; so far: " + received_);
        const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
        if (count <= 0) break;
        received_.append(bytes, static_cast<std::size_t>(count));
    }
    return received_;
}

const std::string& SocketClient::receive_until(const std::string& text) {
    return receive_until([&](const std::string& got) { return got.find(text) != got.npos; });
}

const std::string& SocketClient::receive_all() {
    return receive_until([](const std::string&) { return false; });
}

std::string get(int port, const std::string& target, const std::string& headers) {
    SocketClient client(port);
    client.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
                headers + "\r\n");
    return client.receive_all();
}

}  // namespace tensorpool::command::serve::testing
