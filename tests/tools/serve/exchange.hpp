#pragma once

/// @file
/// Sends requests to a complete server.

#include <string>
#include <thread>
#include <vector>

#include "made_up_processes.hpp"
#include "serve/http/http_server.hpp"
#include "serve/statistics_site.hpp"
#include "socket_client.hpp"

namespace tensorpool::command::serve::testing {

inline const std::string the_token = "a-token-of-the-test";

/// A server on a free port that takes itself for the one at `listen`, and watches one process: 7,
/// with the pool "pool".
class MadeUpServer {
public:
    explicit MadeUpServer(const std::string& token = "",
                          const std::string& listen = "127.0.0.1:9464", const Limits& limits = {})
        : gate(read_listen_address(listen), token, 9464),
          server(
              read_listen_address("127.0.0.1:0"),
              [this](const Request& request) { return site.answer(request); }, limits) {
        set_time(processes.add(7).snapshot, 0);
        watcher.round(at_second(0));
        thread = std::thread([this] { server.run(); });
    }
    ~MadeUpServer() {
        server.stop();
        thread.join();
    }
    MadeUpServer(const MadeUpServer&) = delete;
    MadeUpServer& operator=(const MadeUpServer&) = delete;

    /// Sends these bytes in parts, and no more. Returns all answers, or the first `max` bytes.
    std::string converse(const std::string& bytes, std::size_t part = 4096,
                         std::size_t max = 1 << 20) {
        SocketClient client(server.port());
        // The server may close the connection before it has received everything.
        for (std::size_t at = 0; at < bytes.size() && client.send(bytes.substr(at, part));)
            at += part;
        client.end_sending();
        client.receive_until([max](const std::string& got) { return got.size() >= max; });
        // A stream notices in the round after the next that its client has gone.
        server.wake();
        server.wake();
        // Orders what the server has read before what the test changes next.
        watcher.processes();
        return client.receive_until("");
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
    std::thread thread;
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
