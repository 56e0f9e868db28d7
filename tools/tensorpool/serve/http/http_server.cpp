#include "serve/http/http_server.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "serve/http/socket_transport.hpp"
#include "serve/http/transport.hpp"
#include "serve/json.hpp"

namespace tensorpool::command::serve {
namespace {

class RequestStream final : public httplib::Stream {
public:
    /// `text` is the head and the part of the body that has arrived; `missing` bytes of the body
    /// are still to come.
    RequestStream(Transport& transport, std::string text, std::size_t missing)
        : transport_(transport), text_(std::move(text)), missing_(missing) {}

    bool is_readable() const override { return true; }
    bool is_writable() const override { return transport_.is_writable(); }
    ssize_t read(char* bytes, std::size_t count) override;
    ssize_t write(const char* bytes, std::size_t count) override {
        return transport_.write(bytes, count);
    }
    void get_remote_ip_and_port(std::string& ip, int& port) const override {
        transport_.get_remote_ip_and_port(ip, port);
    }
    void get_local_ip_and_port(std::string& ip, int& port) const override {
        transport_.get_local_ip_and_port(ip, port);
    }
    socket_t socket() const override { return transport_.socket(); }

private:
    Transport& transport_;
    std::string text_;
    std::size_t read_ = 0;  ///< bytes of the text already returned
    std::size_t missing_;
};

ssize_t RequestStream::read(char* bytes, std::size_t count) {
    if (read_ < text_.size()) {
        const std::size_t part = std::min(count, text_.size() - read_);
        std::copy_n(text_.data() + read_, part, bytes);
        read_ += part;
        return static_cast<ssize_t>(part);
    }
    if (missing_ == 0) return 0;
    const ssize_t part = transport_.read(bytes, std::min(count, missing_));
    if (part > 0) missing_ -= static_cast<std::size_t>(part);
    return part;
}

}  // namespace

bool OpenSockets::add(int socket) {
    const std::lock_guard lock(mutex_);
    if (!shut_down_) sockets_.insert(socket);
    return !shut_down_;
}

void OpenSockets::remove(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.erase(socket);
}

void OpenSockets::shut_down() {
    const std::lock_guard lock(mutex_);
    shut_down_ = true;
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

void OpenSockets::begin_wait(int socket) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(socket);
}

void OpenSockets::end_wait(int socket) {
    const std::lock_guard lock(mutex_);
    std::erase(waiting_, socket);
}

bool OpenSockets::shut_down_longest_waiting() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;
    ::shutdown(waiting_.front(), SHUT_RDWR);
    waiting_.pop_front();
    return true;
}

HttpServer::HttpServer(Site& site, const Limits& limits) : site_(site), limits_(limits) {
    set_default_headers(site.headers());
    set_payload_max_length(limits.body_bytes);
    set_keep_alive_max_count(limits.requests);
    set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(limits.idle).count());
    set_handlers();
}

void HttpServer::set_handlers() {
    using httplib::Request;
    using httplib::Response;
    set_pre_routing_handler([this](const Request& request, Response& response) {
        const bool answered = site_.answer(request, response);
        return answered ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    Post("/api/session",
         [this](const Request& request, Response& response) { site_.take(request, response); });
    set_exception_handler([](const Request&, Response& response, const std::exception_ptr&) {
        response.status = 500;
        response.set_content(error_json("the server could not answer"), "application/json");
    });
}

void HttpServer::run(const Listener& listener) {
    svr_sock_ = listener.socket();
    ConnectionThreads threads(limits_.connections);
    while (!stopped_) {
        const int socket = accept4(listener.socket(), nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) {
            // The system may be out of descriptors or memory until other connections end.
            if (errno != EINTR && !stopped_)
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
        } else if (!begin(threads, socket)) {
            turn_away(socket);
        }
    }
}

// If all threads are taken, an idle connection makes room for the new one.
bool HttpServer::begin(ConnectionThreads& threads, int socket) {
    const auto work = [this, socket] { serve(socket); };
    if (threads.begin(work)) return true;
    constexpr std::chrono::milliseconds patience(500);
    return sockets_.shut_down_longest_waiting() && threads.begin(work, patience);
}

void HttpServer::stop() {
    stopped_ = true;
    const socket_t socket = svr_sock_.exchange(INVALID_SOCKET);
    if (socket != INVALID_SOCKET) ::shutdown(socket, SHUT_RDWR);
    sockets_.shut_down();
}

void HttpServer::serve(int socket) {
    SocketTransport transport(socket, limits_.write);
    if (sockets_.add(socket)) converse(transport, socket);
    sockets_.remove(socket);
    close_gently(socket, std::chrono::milliseconds(250));
}

void HttpServer::turn_away(int socket) const {
    SocketTransport transport(socket, std::chrono::milliseconds(0));
    refuse({503, "all connections are taken; close a page"}, transport);
    close_gently(socket, std::chrono::milliseconds(0));
}

void HttpServer::converse(Transport& transport, int socket) {
    HeadReader reader(transport, limits_);
    for (std::size_t i = 1; i <= limits_.requests; ++i) {
        if (!answer_next(reader, transport, socket, i == limits_.requests)) return;
    }
}

/// Returns false if the connection is to be closed.
bool HttpServer::answer_next(HeadReader& reader, Transport& transport, int socket, bool last) {
    sockets_.begin_wait(socket);
    auto head = reader.next();
    sockets_.end_wait(socket);
    if (std::holds_alternative<NoRequest>(head)) return false;
    if (const Refusal* refusal = std::get_if<Refusal>(&head)) {
        refuse(*refusal, transport);
        return false;
    }
    return answer(std::get<RequestHead>(std::move(head)), reader, transport, last);
}

bool HttpServer::answer(RequestHead head, HeadReader& reader, Transport& transport, bool last) {
    const std::string body = reader.take(head.body_bytes);
    const std::size_t missing = head.body_bytes - body.size();
    RequestStream request(transport, std::move(head.text) + body, missing);
    bool closed = false;
    const bool answered = process_request(request, last, closed, nullptr);
    return answered && !closed && head.keeps_connection;
}

void HttpServer::refuse(const Refusal& refusal, Transport& transport) const {
    const std::string body = error_json(refusal.message);
    std::string answer = fmt::format("HTTP/1.1 {} Refused\r\n", refusal.status);
    for (const auto& [name, value] : site_.headers()) answer += name + ": " + value + "\r\n";
    answer += fmt::format(
        "Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        body.size(), body);
    transport.write(answer.data(), answer.size());
}

}  // namespace tensorpool::command::serve
