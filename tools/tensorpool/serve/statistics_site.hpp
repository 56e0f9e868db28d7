#pragma once

/// @file
/// Answers the requests to `tensorpool serve`: the page, its data and the metrics.

#include <thread>

#include <tensorpool/metrics.hpp>

#include "formats/profile/named_profile.hpp"
#include "serve/http/http_server.hpp"
#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

/// All functions may be called from any thread.
class ProfileAnswers {
public:
    /// `watcher` must outlive this object.
    explicit ProfileAnswers(Watcher& watcher) : watcher_(watcher) {}

    static bool has(std::string_view path);
    /// Answers a request to /api/profile, /api/profile/times or /flame-graph. Throws Refusal.
    Response answer(const Request& request, bool has_token);
    std::vector<MetricFamily> metrics();

private:
    using Named = std::optional<profile::NamedProfile>;
    Named named(std::uint64_t process, std::uint64_t time_unix_ns);
    Response flame_graph(const profile::NamedProfile& now, std::uint64_t before_unix_ns);

    Watcher& watcher_;
    std::mutex mutex_;
    std::map<std::uint64_t, profile::ProfileNames> names_;  ///< by process; guarded by the mutex
};

/// All functions may be called from any thread. A call waits for the process; only the connection
/// that asked waits with it.
class HolderAnswers {
public:
    /// Asks a process and returns its answer as JSON. Throws CommandError and AttachError.
    using Ask = std::function<std::string(std::uint64_t process)>;
    static std::string ask_process(std::uint64_t process);

    /// `watcher` must outlive this object.
    explicit HolderAnswers(const Watcher& watcher, Ask ask = ask_process)
        : watcher_(watcher), ask_(std::move(ask)) {}

    /// Answers a request to /api/holders. Throws Refusal.
    Response answer(const Request& request, bool has_token);

private:
    const Watcher& watcher_;
    Ask ask_;
    std::mutex asking_;  ///< one at a time, so that clients cannot keep a process stopped
};

/// Sends `history` first, then `snapshot` after each round, `timeline` if there are new entries,
/// `processes` if that list changed, and `ended`. If a new process reuses the process id, the
/// stream begins again with `history`. Used by one thread at a time.
class EventStream {
public:
    /// `watcher` must outlive this object.
    EventStream(Watcher& watcher, std::uint64_t process) : watcher_(&watcher), process_(process) {}

    std::string next();

private:
    void add_view(const View& view, std::string& events);
    void add_timeline(std::string& events);
    void add_processes(std::string& events);

    Watcher* watcher_;
    std::uint64_t process_;
    std::shared_ptr<const Moment> moment_;  ///< the last one sent
    std::uint64_t entry_ = 0;               ///< the number of the last entry sent
    std::uint64_t list_version_ = 0;
    bool ended_ = false;
};

/// All functions may be called from any thread.
class StatisticsSite {
public:
    /// Both must outlive this object.
    StatisticsSite(Watcher& watcher, const Gate& gate) : watcher_(watcher), gate_(gate) {}

    /// Throws Refusal.
    Response answer(const Request& request);

private:
    Response answer_post(const Request& request);
    Response answer_data(const Request& request);
    Response session(const Request& request) const;
    Response metrics();
    Response stream(const Request& request);

    Watcher& watcher_;
    const Gate& gate_;
    ProfileAnswers profiles_{watcher_};
    HolderAnswers holders_{watcher_};
};

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
