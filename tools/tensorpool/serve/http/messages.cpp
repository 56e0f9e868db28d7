#include "serve/http/messages.hpp"

#include <algorithm>
#include <charconv>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {
namespace {

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

std::string Request::header(const std::string& name) const {
    return value_of(headers, name);
}

std::optional<std::uint64_t> Request::number(const std::string& parameter) const {
    const std::string text = value_of(parameters, parameter);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(number) : std::nullopt;
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
