#include "serve/http/http_server.hpp"

#include <exception>
#include <list>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>

#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

// Each thread may wait for a process that is asked for its holders; one such request at a time is
// answered.
constexpr std::size_t worker_threads = 4;

constexpr std::pair<const char*, const char*> protecting_headers[] = {
    {"Content-Security-Policy",
     "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
     "object-src 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"}};

Response answer_or_refusal(const HttpServer::Answer& answer, const Request& request) {
    try {
        return answer(request);
    } catch (const Refusal& refusal) {
        return refusal.response();
    } catch (const std::exception&) {
        return Refusal(500, "the server could not answer").response();
    }
}

/// Returns the head of an answer. A stream ends with its connection.
std::string text_of(const Response& response, bool keeps_connection) {
    std::map<std::string, std::string> headers = response.headers;
    headers.insert(std::begin(protecting_headers), std::end(protecting_headers));
    if (response.status != 204) headers["Content-Type"] = response.type;
    if (response.status != 204 && !response.next) {
        headers["Content-Length"] = std::to_string(response.body.size());
    }
    if (!keeps_connection) headers["Connection"] = "close";
    const auto reason = boost::beast::http::obsolete_reason(
        static_cast<boost::beast::http::status>(response.status));
    std::string text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, std::string(reason));
    for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
    return text + "\r\n";
}

class Connection;

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
    throw CommandError(
        wrong_usage, fmt::format("serve: --listen {}: {}; expected an address and a port, such as "
                                 "127.0.0.1:9464 or [::1]:9464",
                                 text, why));
}

std::uint16_t read_port(std::string_view port, std::string_view text) {
    const auto number = parse_whole<std::uint16_t>(port);
    if (!number) refuse(text, fmt::format("'{}' is not a port from 0 to 65535", port));
    return *number;
}

std::string_view without_brackets(std::string_view name, std::string_view text) {
    const bool brackets = name.size() > 2 && name.front() == '[' && name.back() == ']';
    if (brackets) return name.substr(1, name.size() - 2);
    if (name.find(':') != name.npos) refuse(text, "an IPv6 address needs brackets");
    return name;
}

asio::ip::address resolve(const std::string& name, std::string_view text) {
    asio::io_context io;
    error_code error;
    const auto found = tcp::resolver(io).resolve(name, "", tcp::resolver::flags(), error);
    if (error) refuse(text, error.message());
    return found.begin()->endpoint().address();
}

}  // namespace

/// What all connections share; it is used by the thread of `run`, unless its type allows others.
struct HttpServer::State {
    State(Answer how, const Limits& of_clients) : answer(std::move(how)), limits(of_clients) {}

    Answer answer;
    Limits limits;
    std::size_t open = 0;
    std::size_t streams = 0;
    std::uint64_t rounds = 0;        ///< calls of `wake`
    std::list<Connection*> waiting;  ///< for a request, the longest wait first
    // A connection lives as long as an operation of it. These end before what is above.
    asio::io_context io;
    tcp::acceptor acceptor{io};
    asio::steady_timer pause{io};
    std::vector<std::shared_ptr<Connection>> idle_streams;  ///< those that have sent everything
    asio::thread_pool workers{worker_threads};
};

namespace {

using State = HttpServer::State;

/// One connection. All functions are called on the thread of `run`.
class Connection final : public std::enable_shared_from_this<Connection> {
    /// Returns a handler of an operation that calls a member of this connection.
    auto then(void (Connection::*member)(error_code)) {
        return [self = shared_from_this(), member](error_code error, std::size_t = 0) {
            ((*self).*member)(error);
        };
    }

public:
    Connection(State& server, tcp::socket socket)
        : server_(server), socket_(std::move(socket)), timer_(server.io) {
        ++server_.open;
    }
    ~Connection() {
        end_wait();
        --server_.open;
        if (next_) --server_.streams;
    }

    void await_request() {
        begin_wait();
        limit(server_.limits.idle);
        if (!received_.empty()) return read_head({});
        socket_.async_wait(tcp::socket::wait_read, then(&Connection::read_head));
    }
    void refuse(const Refusal& refusal) {
        end_wait();
        request_ = {};
        respond(refusal.response());
    }
    /// Ends what the connection waits for, without an answer.
    void close() {
        end_wait();
        error_code ignored;
        socket_.close(ignored);
    }
    void send_events() {
        round_ = server_.rounds;
        compute<std::string>(next_, &Connection::write_events);
    }

private:
    /// Cancels what is waited for after this time, unless a later call sets another time.
    void limit(std::chrono::milliseconds time) {
        late_ = false;
        timer_.expires_after(time);
        timer_.async_wait([weak = weak_from_this()](error_code error) {
            const auto self = weak.lock();
            // The handler of a time that was reset may be under way already.
            if (error || !self || self->timer_.expiry() > std::chrono::steady_clock::now()) return;
            self->late_ = true;
            self->socket_.cancel(error);
        });
    }
    void begin_wait() { server_.waiting.push_back(this); }
    void end_wait() { server_.waiting.remove(this); }
    void read_head(error_code error) {
        if (error) return;
        limit(server_.limits.request);
        asio::async_read_until(socket_, asio::dynamic_buffer(received_, server_.limits.head_bytes),
                               "\r\n\r\n",
                               [self = shared_from_this()](error_code failed, std::size_t bytes) {
                                   if (failed) return self->fail(failed);
                                   self->read_body(bytes);
                               });
    }
    void read_body(std::size_t head_bytes) {
        try {
            request_ = serve::read_head(received_.substr(0, head_bytes), server_.limits);
        } catch (const Refusal& refusal) {
            return refuse(refusal);
        }
        received_.erase(0, head_bytes);
        const std::size_t missing =
            request_.body_bytes - std::min(request_.body_bytes, received_.size());
        asio::async_read(socket_, asio::dynamic_buffer(received_), asio::transfer_exactly(missing),
                         then(&Connection::answer));
    }
    /// Reports a request that could not be read, unless the client has gone.
    void fail(error_code error) {
        if (error == asio::error::not_found) return refuse({431, "the headers are too long"});
        if (late_ || (error == asio::error::eof && !received_.empty())) {
            refuse({408, "the request was too slow or incomplete"});
        }
    }
    void answer(error_code error) {
        if (error) return fail(error);
        end_wait();
        request_.body = received_.substr(0, request_.body_bytes);
        received_.erase(0, request_.body_bytes);
        compute<Response>([this] { return answer_or_refusal(server_.answer, request_); },
                          &Connection::respond);
    }
    void respond(Response response) {
        const bool is_head = request_.method == "HEAD";
        if (response.next && !is_head) {
            if (server_.streams >= server_.limits.streams) {
                return refuse({503, "all streams are taken; close a page"});
            }
            ++server_.streams;
            next_ = response.next;
        }
        request_.keeps_connection &= !response.next;
        text_ = text_of(response, request_.keeps_connection);
        if (!is_head) text_ += response.body;
        limit(server_.limits.write);
        asio::async_write(socket_, asio::buffer(text_), then(&Connection::go_on));
    }
    void go_on(error_code error) {
        if (error) return;
        if (next_) return await_events();
        if (request_.keeps_connection) return await_request();
        // Closing a socket with unread bytes would reset the connection, and the client could lose
        // the answer.
        socket_.shutdown(tcp::socket::shutdown_send, error);
        limit(250ms);
        drain({}, 0);
    }
    void await_events() {
        if (round_ == server_.rounds) return server_.idle_streams.push_back(shared_from_this());
        send_events();
    }
    void write_events(std::string events) {
        text_ = events.empty() ? ":\n\n" : std::move(events);
        limit(server_.limits.write);
        asio::async_write(socket_, asio::buffer(text_), then(&Connection::go_on));
    }
    void drain(error_code error, std::size_t bytes) {
        constexpr std::size_t max_bytes = 256 * 1024;
        drained_ += bytes;
        if (error || drained_ > max_bytes) return;
        text_.resize(4096);
        socket_.async_read_some(asio::buffer(text_),
                                [self = shared_from_this()](error_code failed, std::size_t count) {
                                    self->drain(failed, count);
                                });
    }

    /// Runs `work` on another thread, then `use` with its result on this one.
    template <class Result>
    void compute(std::function<Result()> work, void (Connection::*use)(Result)) {
        asio::post(
            server_.workers, [self = shared_from_this(), work = std::move(work), use]() mutable {
                State& server = self->server_;
                std::optional<Result> result;
                try {
                    result = work();
                } catch (const std::exception&) {
                    // Memory was short: the connection is closed.
                }
                // Moved, so that no connection ends on this thread.
                asio::post(server.io,
                           [self = std::move(self), result = std::move(result), use]() mutable {
                               if (result) ((*self).*use)(std::move(*result));
                           });
            });
    }

    State& server_;
    tcp::socket socket_;
    asio::steady_timer timer_;
    bool late_ = false;     ///< the timer has ended what was waited for
    std::string received_;  ///< but not used yet
    Request request_;
    std::string text_;                   ///< being sent
    std::function<std::string()> next_;  ///< the events of a stream
    /// When the events were taken. A new stream has events to send before the next round.
    std::uint64_t round_ = std::numeric_limits<std::uint64_t>::max();
    std::size_t drained_ = 0;
};

/// If all connections are taken, the one that waits longest for a request makes room.
void begin(State& server, tcp::socket socket) {
    fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    const bool full = server.open >= server.limits.connections;
    const bool makes_room = !server.waiting.empty();
    if (full && makes_room) server.waiting.front()->close();
    const auto connection = std::make_shared<Connection>(server, std::move(socket));
    if (!full || makes_room) return connection->await_request();
    connection->refuse(Refusal(503, "all connections are taken; close a page"));
}

void accept(State& server) {
    server.acceptor.async_accept([&server](error_code error, tcp::socket socket) {
        if (!error) {
            begin(server, std::move(socket));
            return accept(server);
        }
        // The system may be out of descriptors or memory until other connections end.
        server.pause.expires_after(10ms);
        server.pause.async_wait([&server](error_code) { accept(server); });
    });
}

const char* what_helps(error_code error) {
    if (error == asio::error::address_in_use) {
        return "; another program uses this port: end it, or choose another port with --listen";
    }
    if (error == boost::system::errc::address_not_available) {
        return "; this machine does not have the address";
    }
    if (error == asio::error::access_denied) {
        return "; ports below 1024 need administrator rights";
    }
    return "";
}

/// With reuse_address, a port whose last connections are still closing can be used, but not one
/// with another listener.
void listen(tcp::acceptor& acceptor, const ListenAddress& address) try {
    const tcp::endpoint where(asio::ip::make_address(address.number), address.port);
    acceptor.open(where.protocol());
    fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(where);
    acceptor.listen(128);
} catch (const boost::system::system_error& failed) {
    throw CommandError(finding, fmt::format("serve: cannot listen on {}: {}{}",
                                            with_port(address.name, address.port),
                                            failed.code().message(), what_helps(failed.code())));
}

std::string value_of(const std::map<std::string, std::string>& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
}

/// Replaces %XX by a byte. An incomplete or invalid one stays as it is.
std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned char byte = 0;
        const char* const digits = text.data() + i + 1;
        const bool coded = text[i] == '%' && i + 2 < text.size() &&
                           std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
        out += coded ? static_cast<char>(byte) : text[i];
        if (coded) i += 2;
    }
    return out;
}

std::string decoded_form(std::string_view text) {
    std::string spaced(text);
    std::ranges::replace(spaced, '+', ' ');
    return decoded(spaced);
}

namespace http = boost::beast::http;
using Parser = http::request_parser<http::empty_body>;

constexpr std::array<std::string_view, 9> used_headers = {
    "host",           "origin",     "authorization",  "cookie",        "content-type",
    "content-length", "connection", "sec-fetch-site", "sec-fetch-mode"};

std::string_view view(boost::beast::string_view text) {
    return {text.data(), text.size()};
}

bool is_printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
}

Refusal malformed() {
    return {400, "the request is malformed"};
}

Refusal refusal_for(boost::system::error_code error) {
    if (error == http::error::body_limit) return {413, "the body is too long"};
    if (error == http::error::bad_version) return {505, "this server supports only HTTP/1.1"};
    return malformed();
}

void read_first_line(const Parser::value_type& head, const Limits& limits, Request& request) {
    const std::string_view target = view(head.target());
    request.method = std::string(view(head.method_string()));
    constexpr std::string_view rest = "  HTTP/1.1";
    if (request.method.size() + target.size() + rest.size() > limits.line_bytes) {
        throw Refusal(414, "the address is too long");
    }
    if (target.front() != '/' || !is_printable(target)) throw malformed();
    if (request.method != "GET" && request.method != "HEAD" && request.method != "POST") {
        throw Refusal(405, "this server supports GET, HEAD and POST only");
    }
    read_target(target, request);
}

void read_headers(const Parser::value_type& head, const Limits& limits, Request& request) {
    std::size_t count = 0;
    for (const auto& header : head) {
        if (++count > limits.headers) throw Refusal(431, "too many headers");
        const std::string name = lower(view(header.name_string()));
        const std::string_view value = view(header.value());
        if (name == "transfer-encoding") throw Refusal(501, "send a Content-Length");
        if (name == "content-encoding") throw Refusal(415, "send the body without encoding");
        if (name == "expect") throw Refusal(417, "send the body without waiting");
        if (std::ranges::find(used_headers, name) == used_headers.end()) continue;
        const bool first = request.headers.emplace(name, value).second;
        if (!first || value.empty() || !is_printable(value)) throw malformed();
    }
    if (!request.headers.contains("host")) throw Refusal(400, "the request has no Host header");
}

}  // namespace

ListenAddress read_listen_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) refuse(text, "no address given");
    ListenAddress address;
    address.port = read_port(text.substr(colon + 1), text);
    address.name = lower(without_brackets(text.substr(0, colon), text));
    asio::ip::address number = resolve(address.name, text);
    address.number = number.to_string();
    if (number.is_v6() && number.to_v6().is_v4_mapped()) {
        number = asio::ip::make_address_v4(asio::ip::v4_mapped, number.to_v6());
    }
    address.is_loopback = number.is_loopback();
    address.is_any = number.is_unspecified();
    return address;
}

HttpServer::HttpServer(const ListenAddress& address, Answer answer, const Limits& limits)
    : state_(std::make_unique<State>(std::move(answer), limits)) {
    listen(state_->acceptor, address);
}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
    return state_->acceptor.local_endpoint().port();
}

void HttpServer::run() {
    accept(*state_);
    while (!state_->io.stopped()) {
        try {
            state_->io.run();
        } catch (const std::exception&) {
            // Memory was short: the connection that needed it is closed.
        }
    }
    state_->workers.join();
}

void HttpServer::stop() {
    state_->io.stop();
}

void HttpServer::wake() {
    asio::post(state_->io, [this] {
        ++state_->rounds;
        for (const auto& stream : std::exchange(state_->idle_streams, {})) stream->send_events();
    });
}

std::string Request::header(const std::string& name) const {
    return value_of(headers, name);
}

std::optional<std::uint64_t> Request::number(const std::string& parameter) const {
    return parse_whole<std::uint64_t>(value_of(parameters, parameter));
}

Response Refusal::response() const {
    Response response{.status = status_, .body = error_json(what())};
    if (status_ == 401) response.headers["WWW-Authenticate"] = "Bearer realm=\"tensorpool\"";
    return response;
}

void read_target(std::string_view target, Request& request) {
    const std::size_t end = std::min(target.find('?'), target.size());
    request.path = decoded(target.substr(0, end));
    request.parameters = read_parameters(target.substr(std::min(end + 1, target.size())));
}

std::map<std::string, std::string> read_parameters(std::string_view text) {
    std::map<std::string, std::string> parameters;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('&'), text.size());
        const std::string_view one = text.substr(0, end);
        const std::size_t sign = std::min(one.find('='), one.size());
        parameters.emplace(decoded_form(one.substr(0, sign)),
                           decoded_form(one.substr(std::min(sign + 1, one.size()))));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parameters;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& letter : out) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return out;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Request read_head(std::string_view text, const Limits& limits) {
    // The parser joins folded lines, which are obsolete.
    if (text.find("\r\n ") != text.npos || text.find("\r\n\t") != text.npos) throw malformed();
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(text.size() + 1));
    parser.body_limit(limits.body_bytes);
    boost::system::error_code error;
    parser.put(boost::asio::buffer(text.data(), text.size()), error);
    if (error) throw refusal_for(error);
    Request request;
    read_first_line(parser.get(), limits, request);
    read_headers(parser.get(), limits, request);
    request.body_bytes = static_cast<std::size_t>(parser.content_length().value_or(0));
    if (request.body_bytes != 0 && request.method != "POST") throw malformed();
    // The unread body of a rejected request could be taken for another request.
    request.keeps_connection = parser.get().keep_alive() && request.method != "POST";
    return request;
}

}  // namespace tensorpool::command::serve
