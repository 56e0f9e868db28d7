#pragma once

/// @file
/// Connects all parts of `tensorpool serve`.

#include <thread>

#include "serve/http/http_server.hpp"
#include "serve/statistics_site.hpp"

namespace tensorpool::command::serve {

class Service {
public:
    struct Options {
        ListenAddress address;
        std::string token = {};  ///< "": none is required
        Limits limits = {};
        std::chrono::milliseconds period{1000};  ///< of the rounds
    };

    /// Reads the processes once, then serves until it is destroyed. Throws CommandError if it
    /// cannot listen. `processes` must outlive this object.
    Service(Processes& processes, const Options& options);

    int port() const { return server_.port(); }

private:
    void take_round();
    void take_rounds(const std::stop_token& stop, std::chrono::milliseconds period);

    HttpServer server_;
    Watcher watcher_;
    Gate gate_;
    StatisticsSite site_;
    std::jthread rounds_;
    std::jthread answers_;
};

}  // namespace tensorpool::command::serve
