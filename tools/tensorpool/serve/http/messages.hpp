#pragma once

/// @file
/// Requests and answers, without the library that reads and writes them.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tensorpool::command::serve {

struct Request {
    std::string method = {};                             ///< GET, HEAD or POST
    std::string path = {};                               ///< decoded
    std::map<std::string, std::string> headers = {};     ///< names in lower case
    std::map<std::string, std::string> parameters = {};  ///< of the address, decoded
    std::string body = {};
    std::size_t body_bytes = 0;  ///< its size according to the head
    bool keeps_connection = false;

    /// Returns the value of a header, whose name is given in lower case; "" if there is none.
    std::string header(const std::string& name) const;
    /// Returns the whole number that a parameter has, or nothing.
    std::optional<std::uint64_t> number(const std::string& parameter) const;
};

struct Response {
    int status = 200;
    std::string type = "application/json";
    std::string body = {};
    /// In addition to the protecting headers of every answer, or instead of those.
    std::map<std::string, std::string> headers = {};
    /// If set, the body has no end: this function returns what is new since its last call.
    std::function<std::string()> next = {};
};

/// A request that is not answered, with the status and the reason.
class Refusal : public std::runtime_error {
public:
    Refusal(int status, const std::string& reason) : std::runtime_error(reason), status_(status) {}
    Response response() const;

private:
    int status_;
};

/// Splits the target of a request into path and parameters.
void read_target(std::string_view target, Request& request);
/// Returns the parameters of an address or a form, decoded. The first of the same name counts.
std::map<std::string, std::string> read_parameters(std::string_view text);

/// Returns a text in lower case, independent of the locale.
std::string lower(std::string_view text);
/// Returns a text without the spaces and tabs around it.
std::string_view trimmed(std::string_view text);

/// The limits for clients. Connections that exceed them are closed.
struct Limits {
    std::size_t connections = 80;
    /// Less than the number of connections, so that open pages, read or not, leave some of them for
    /// other requests.
    std::size_t streams = 64;
    std::size_t line_bytes = 4096;  ///< of the first line of a request
    std::size_t head_bytes = 16384;
    std::size_t headers = 100;
    std::size_t body_bytes = 4096;

    std::chrono::milliseconds idle{15'000};     ///< before a request begins
    std::chrono::milliseconds request{10'000};  ///< for a whole request, from its first byte
    /// For each part of an answer: the events of one round, or the whole of any other answer.
    std::chrono::milliseconds write{10'000};
};

/// Parses a head, which includes the empty line at its end (RFC 9112, section 2.1). Throws Refusal.
/// The headers that this server uses may occur once each, in printable ASCII.
Request read_head(std::string_view head, const Limits& limits);

}  // namespace tensorpool::command::serve
