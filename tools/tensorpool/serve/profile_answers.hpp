#pragma once

/// @file
/// Answers requests for heap profiles: as JSON, as a flame graph, and as metrics. They are only
/// shown to clients with a token, because they contain the names of a program's functions, and any
/// user of this machine can connect to a loopback address.

#include <httplib.h>

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include <tensorpool/metrics.hpp>

#include "formats/profile/named_profile.hpp"
#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

/// All functions may be called from any thread.
class ProfileAnswers {
public:
    /// `watcher` must outlive this object.
    explicit ProfileAnswers(Watcher& watcher) : watcher_(watcher) {}

    /// Answers a request to /api/profile, /api/profile/times or /flame-graph. Returns false for
    /// other paths.
    bool answer(const httplib::Request& request, httplib::Response& response, bool has_token);
    /// Returns the metrics of the running processes.
    std::vector<MetricFamily> metrics();

private:
    using Named = std::optional<profile::NamedProfile>;
    Named named(std::uint64_t process, std::uint64_t time_unix_ns);
    Named find(const httplib::Request& request, httplib::Response& response);
    void send_flame_graph(const httplib::Request& request, httplib::Response& response);

    Watcher& watcher_;
    std::mutex mutex_;
    std::map<std::uint64_t, profile::ProfileNames> names_;  ///< by process; guarded by the mutex
};

}  // namespace tensorpool::command::serve
