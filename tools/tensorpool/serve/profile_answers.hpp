#pragma once

/// @file
/// Answers requests for heap profiles: as JSON, as a flame graph, and as metrics. They are only
/// shown to clients with a token, because they contain the names of a program's functions, and any
/// user of this machine can connect to a loopback address.

#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <tensorpool/metrics.hpp>

#include "formats/profile/named_profile.hpp"
#include "serve/http/messages.hpp"
#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

/// All functions may be called from any thread.
class ProfileAnswers {
public:
    /// `watcher` must outlive this object.
    explicit ProfileAnswers(Watcher& watcher) : watcher_(watcher) {}

    /// Whether `answer` takes requests to this path.
    static bool has(std::string_view path);
    /// Answers a request to /api/profile, /api/profile/times or /flame-graph. Throws Refusal.
    Response answer(const Request& request, bool has_token);
    /// Returns the metrics of the running processes.
    std::vector<MetricFamily> metrics();

private:
    using Named = std::optional<profile::NamedProfile>;
    Named named(std::uint64_t process, std::uint64_t time_unix_ns);
    Response flame_graph(const profile::NamedProfile& now, std::uint64_t before_unix_ns);

    Watcher& watcher_;
    std::mutex mutex_;
    std::map<std::uint64_t, profile::ProfileNames> names_;  ///< by process; guarded by the mutex
};

}  // namespace tensorpool::command::serve
