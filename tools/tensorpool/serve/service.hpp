#pragma once

/// @file
/// Connects all parts of `tensorpool serve`.

#include <chrono>
#include <string>
#include <thread>

#include "serve/http/gate.hpp"
#include "serve/http/http_server.hpp"
#include "serve/http/listener.hpp"
#include "serve/statistics_site.hpp"
#include "serve/watch/processes.hpp"
#include "serve/watch/rounds.hpp"
#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

class Service {
public:
    struct Options {
        ListenAddress address;
        std::string token = {};  ///< "": none is required
        Limits limits = {};
        std::chrono::milliseconds period = Rounds::usual_period;
    };

    /// Serves until it is destroyed. Clients are answered once the processes have been read. Throws
    /// CommandError if it cannot listen. `processes` must outlive this object.
    Service(Processes& processes, const Options& options);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    int port() const { return listener_.port(); }

private:
    Listener listener_;
    Watcher watcher_;
    Gate gate_;
    StatisticsSite site_;
    HttpServer server_;
    Rounds rounds_;
    std::thread thread_;
};

}  // namespace tensorpool::command::serve
