#pragma once

/// @file
/// Sends requests to a complete server without a socket.

#include <string>
#include <vector>

#include "made_up_processes.hpp"
#include "memory_transport.hpp"
#include "serve/http/http_server.hpp"
#include "serve/statistics_site.hpp"

namespace tensorpool::command::serve::testing {

inline const std::string the_token = "a-token-of-the-test";

/// A server on localhost:9464 that watches one process: 7, with the pool "pool".
class MadeUpServer {
public:
    explicit MadeUpServer(const std::string& token = "",
                          const std::string& listen = "127.0.0.1:9464", const Limits& limits = {})
        : gate(HostNames(read_listen_address(listen)), token, 9464), server(site, limits) {
        set_time(processes.add(7).snapshot, 0);
        watcher.round(at_second(0));
    }

    /// Returns all answers to these bytes.
    std::string converse(const std::string& bytes, std::size_t part = 4096,
                         std::size_t max = 1 << 20) {
        MemoryTransport transport(bytes, part, max);
        server.converse(transport);
        return transport.got;
    }
    /// Returns the answer to a client that sends a byte an hour from byte `slow_from` on.
    std::string converse_slowly(const std::string& bytes, std::size_t slow_from) {
        MemoryTransport transport(bytes, 1, 1 << 20, slow_from);
        server.converse(transport);
        return transport.got;
    }
    std::string get(const std::string& target, const std::string& headers = "") {
        return converse("GET " + target + " HTTP/1.1\r\nHost: localhost:9464\r\n" + headers +
                        "\r\n");
    }
    std::string post(
        const std::string& target, const std::string& body,
        const std::string& headers = "Content-Type: application/x-www-form-urlencoded\r\n") {
        return converse("POST " + target + " HTTP/1.1\r\nHost: localhost:9464\r\n" + headers +
                        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    }

    MadeUpProcesses processes;
    Watcher watcher{processes, KeepProfiles::yes};
    Gate gate;
    StatisticsSite site{watcher, gate};
    HttpServer server;
};

inline int status_of(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
}

inline std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.substr(end + 4);
}

/// Returns the value of a header; "" if there is none.
inline std::string header_of(const std::string& answer, const std::string& name) {
    const std::size_t at = answer.find("\r\n" + name + ": ");
    if (at == std::string::npos || at > answer.find("\r\n\r\n")) return "";
    const std::size_t begin = at + name.size() + 4;
    return answer.substr(begin, answer.find("\r\n", begin) - begin);
}

inline std::size_t answers_in(const std::string& got) {
    std::size_t count = 0;
    for (std::size_t at = got.find("HTTP/1.1 "); at != got.npos;
         at = got.find("HTTP/1.1 ", at + 1)) {
        ++count;
    }
    return count;
}

}  // namespace tensorpool::command::serve::testing
