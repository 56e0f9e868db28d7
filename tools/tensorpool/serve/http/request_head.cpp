#include "serve/http/request_head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "serve/http/ascii.hpp"

namespace tensorpool::command::serve {
namespace {

enum Known : std::size_t {
    host,
    origin,
    authorization,
    cookie,
    content_type,
    content_length,
    connection,
    fetch_site,
    fetch_mode,
    known_count
};
constexpr std::array<std::string_view, known_count> known_names = {
    "Host",           "Origin",     "Authorization",  "Cookie",        "Content-Type",
    "Content-Length", "Connection", "Sec-Fetch-Site", "Sec-Fetch-Mode"};

/// Refusals are thrown and caught in this file.
constexpr Refusal malformed{400, "the request is malformed"};

struct FirstLine {
    std::string_view text;
    std::string_view method;
    std::string_view version;
};

struct Headers {
    std::array<std::optional<std::string_view>, known_count> values;
    std::size_t count = 0;
};

std::string_view take_line(std::string_view& text) {
    const std::size_t end = text.find("\r\n");
    if (end == std::string_view::npos) throw malformed;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    return line;
}

FirstLine read_first_line(std::string_view line, const Limits& limits) {
    if (line.size() > limits.line_bytes) throw Refusal{414, "the address is too long"};
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last || !is_printable(line)) throw malformed;
    const std::string_view target = line.substr(first + 1, last - first - 1);
    if (target.empty() || target.front() != '/' || target.find(' ') != target.npos) throw malformed;
    return {line, line.substr(0, first), line.substr(last + 1)};
}

void check(const FirstLine& line) {
    if (line.version != "HTTP/1.1" && line.version != "HTTP/1.0") {
        throw Refusal{505, "this server supports only HTTP/1.1"};
    }
    if (line.method != "GET" && line.method != "HEAD" && line.method != "POST") {
        throw Refusal{405, "this server supports GET, HEAD and POST only"};
    }
}

void refuse_encoded_bodies(std::string_view name) {
    if (equal_letters(name, "Transfer-Encoding")) throw Refusal{501, "send a Content-Length"};
    if (equal_letters(name, "Content-Encoding"))
        throw Refusal{415, "send the body without encoding"};
    if (equal_letters(name, "Expect")) throw Refusal{417, "send the body without waiting"};
}

void read_header(std::string_view line, Headers& headers) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) throw malformed;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (!is_token(name) || has_controls(value)) throw malformed;
    refuse_encoded_bodies(name);
    const auto known = std::find_if(known_names.begin(), known_names.end(),
                                    [&](std::string_view of) { return equal_letters(of, name); });
    if (known == known_names.end()) return;
    std::optional<std::string_view>& kept =
        headers.values[static_cast<std::size_t>(known - known_names.begin())];
    if (kept || value.empty() || !is_printable(value)) throw malformed;
    kept = value;
}

Headers read_headers(std::string_view rest, const Limits& limits) {
    Headers headers;
    for (std::string_view line = take_line(rest); !line.empty(); line = take_line(rest)) {
        if (++headers.count > limits.headers) throw Refusal{431, "too many headers"};
        read_header(line, headers);
    }
    if (!headers.values[host]) throw Refusal{400, "the request has no Host header"};
    return headers;
}

std::size_t read_body_bytes(const Headers& headers, std::string_view method, const Limits& limits) {
    const std::string_view text = headers.values[content_length].value_or("0");
    std::size_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error == std::errc::result_out_of_range) throw Refusal{413, "the body is too long"};
    if (error != std::errc() || end != text.data() + text.size()) throw malformed;
    if (bytes > limits.body_bytes) throw Refusal{413, "the body is too long"};
    if (bytes != 0 && method != "POST") throw malformed;
    return bytes;
}

/// Only a request without a body keeps its connection open. The unread body of a rejected request
/// could otherwise be taken for another request.
bool keeps_connection(const FirstLine& line, const Headers& headers) {
    const std::string_view requested = headers.values[connection].value_or("");
    return line.version == "HTTP/1.1" && line.method != "POST" &&
           !equal_letters(requested, "close");
}

std::string write_head(const FirstLine& line, const Headers& headers, const RequestHead& head) {
    std::string text(line.text);
    text += "\r\n";
    for (std::size_t i = 0; i < known_count; ++i) {
        if (!headers.values[i] || i == connection || i == content_length) continue;
        text += fmt::format("{}: {}\r\n", known_names[i], *headers.values[i]);
    }
    if (line.method == "POST") text += fmt::format("Content-Length: {}\r\n", head.body_bytes);
    if (!head.keeps_connection) text += "Connection: close\r\n";
    return text + "\r\n";
}

}  // namespace

std::variant<RequestHead, Refusal> read_head(std::string_view bytes, const Limits& limits) try {
    const FirstLine line = read_first_line(take_line(bytes), limits);
    check(line);
    const Headers headers = read_headers(bytes, limits);
    RequestHead head;
    head.body_bytes = read_body_bytes(headers, line.method, limits);
    head.keeps_connection = keeps_connection(line, headers);
    head.text = write_head(line, headers, head);
    return head;
} catch (const Refusal& refusal) {
    return refusal;
}

}  // namespace tensorpool::command::serve
