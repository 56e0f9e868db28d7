#pragma once

/// @file
/// Answers the requests to `tensorpool serve`: the page, its data and the metrics.

#include <condition_variable>
#include <exception>
#include <stop_token>

#include "common/output.hpp"
#include "formats/holders/answer.hpp"
#include "formats/profile/formats.hpp"
#include "page_assets.hpp"
#include "serve/http/http_server.hpp"
#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

inline constexpr std::uint64_t ns_per_ms = 1'000'000;

/// Returns the times in milliseconds, as JavaScript counts them. Rounded up, so that the profile of
/// that time is found.
inline std::string times_json(const std::vector<std::uint64_t>& times_ns) {
    nlohmann::json times = nlohmann::json::array();
    for (const std::uint64_t ns : times_ns) times.push_back(ns / ns_per_ms + 1);
    return nlohmann::json{{"times_unix_ms", std::move(times)}}.dump();
}

inline std::uint64_t time_in(const Request& request, const char* name) {
    return request.number(name).value_or(0) * ns_per_ms;
}

/// All functions may be called from any thread.
class ProfileAnswers {
public:
    /// `watcher` must outlive this object.
    explicit ProfileAnswers(Watcher& watcher) : watcher_(watcher) {}

    static bool has(std::string_view path) {
        return path == "/api/profile" || path == "/api/profile/times" || path == "/flame-graph";
    }
    /// Answers a request to /api/profile, /api/profile/times or /flame-graph. Throws Refusal.
    Response answer(const Request& request, bool has_token) {
        if (!has_token) {
            throw Refusal(403,
                          "call stacks are only shown if tensorpool serve was started with "
                          "--token-file, because any user of the machine can connect");
        }
        const std::uint64_t process = find_process(watcher_, request);
        if (request.path == "/api/profile/times") {
            return {.body = times_json(watcher_.profile_times(process))};
        }
        const Named now = named(process, time_in(request, "time"));
        if (!now) {
            throw Refusal(404, fmt::format("no heap profile of process {} is kept for this time; "
                                           "/api/profile/times lists the times",
                                           process));
        }
        if (request.path == "/flame-graph") return flame_graph(*now, time_in(request, "before"));
        return {.body = to_json(*now).dump()};
    }
    std::vector<MetricFamily> metrics() {
        std::vector<profile::NamedProfile> profiles;
        std::set<std::uint64_t> known;
        for (const ListedProcess& listed : watcher_.processes()) {
            known.insert(listed.process);
            if (listed.ended || !listed.readable) continue;
            if (Named profile = named(listed.process, 0)) profiles.push_back(std::move(*profile));
        }
        const std::lock_guard lock(mutex_);
        std::erase_if(names_, [&](const auto& names) { return !known.contains(names.first); });
        return profile::site_metrics(profiles);
    }

private:
    using Named = std::optional<profile::NamedProfile>;
    Named named(std::uint64_t process, std::uint64_t time_unix_ns) {
        std::optional<HeapProfile> profile = watcher_.profile(process, time_unix_ns);
        if (!profile) return std::nullopt;
        const std::lock_guard lock(mutex_);
        return names_[process].name(std::move(*profile), profile::Value::live);
    }
    /// The page has a policy of its own, which lets no other script run, and may stand in our page.
    Response flame_graph(const profile::NamedProfile& now, std::uint64_t before_unix_ns) {
        nlohmann::ordered_json before;
        if (before_unix_ns != 0) {
            if (const Named older = named(now.profile.process, before_unix_ns))
                before = to_json(*older);
        }
        HtmlPage page = to_flame_graph(now, before);
        return {.type = "text/html; charset=utf-8",
                .body = std::move(page.text),
                .headers = {{"X-Frame-Options", "SAMEORIGIN"},
                            {"Content-Security-Policy", page.policy + "; frame-ancestors 'self'"}}};
    }

    Watcher& watcher_;
    std::mutex mutex_;
    std::map<std::uint64_t, profile::ProfileNames> names_;  ///< by process; guarded by the mutex
};

inline constexpr std::chrono::seconds patience{3};
inline constexpr std::size_t all_arrays = 100;

/// All functions may be called from any thread. A call waits for the process; only the connection
/// that asked waits with it.
class HolderAnswers {
public:
    /// Asks a process and returns its answer as JSON. Throws CommandError and AttachError.
    using Ask = std::function<std::string(std::uint64_t process)>;
    static std::string ask_process(std::uint64_t process) {
        const StatisticsReader reader = StatisticsReader::attach(process);
        return to_json(holders::ask(reader, patience), process, all_arrays);
    }

    /// `watcher` must outlive this object.
    explicit HolderAnswers(const Watcher& watcher, Ask ask = ask_process)
        : watcher_(watcher), ask_(std::move(ask)) {}

    /// Answers a request to /api/holders. Throws Refusal.
    Response answer(const Request& request, bool has_token) {
        if (!has_token) {
            throw Refusal(
                403,
                "holders are only named if tensorpool serve was started with --token-file, "
                "because any user of the machine can connect");
        }
        const std::uint64_t process = find_process(watcher_, request);
        const std::unique_lock lock(asking_, std::try_to_lock);
        if (!lock) {
            throw Refusal(503, "another request for holders is under way; try again after it");
        }
        try {
            return {.body = ask_(process)};
        } catch (const CommandError& error) {
            throw Refusal(504, error.what());
        } catch (const AttachError& error) {
            throw Refusal(404, error.what());
        }
    }

private:
    const Watcher& watcher_;
    Ask ask_;
    std::mutex asking_;  ///< one at a time, so that clients cannot keep a process stopped
};

/// Replaces the line breaks that JSON may contain between tokens, because a line break would end
/// the event's data.
inline void add_event(std::string& events, std::string_view name, std::string_view data) {
    events.append("event: ").append(name).append("\ndata: ");
    for (const char letter : data) events += letter == '\n' || letter == '\r' ? ' ' : letter;
    events += "\n\n";
}

/// Sends `history` first, then `snapshot` after each round, `timeline` if there are new entries,
/// `processes` if that list changed, and `ended`. If a new process reuses the process id, the
/// stream begins again with `history`. Used by one thread at a time.
class EventStream {
public:
    /// `watcher` must outlive this object.
    EventStream(Watcher& watcher, std::uint64_t process) : watcher_(&watcher), process_(process) {}

    std::string next() {
        std::string events;
        if (const std::optional<View> view = watcher_->view(process_)) add_view(*view, events);
        add_processes(events);
        return events;
    }

private:
    void add_view(const View& view, std::string& events) {
        if (ended_ && !view.ended) *this = EventStream(*watcher_, process_);
        if (!moment_) {
            add_event(events, "history",
                      watcher_->history_json(process_, view.moment->snapshot().time_ns));
        }
        if (moment_ != view.moment) {
            moment_ = view.moment;
            add_event(events, "snapshot", moment_->json());
        }
        add_timeline(events);
        if (view.ended && !ended_) add_event(events, "ended", ended_json(view.ended_unix_ns));
        ended_ = view.ended;
    }
    void add_timeline(std::string& events) {
        const TimelinePart part = watcher_->entries_since(process_, entry_);
        entry_ = part.last;
        if (!part.entries.empty() || part.lost != 0) add_event(events, "timeline", to_json(part));
    }
    void add_processes(std::string& events) {
        const std::uint64_t version = watcher_->list_version();
        if (version == list_version_) return;
        list_version_ = version;
        add_event(events, "processes", to_json(watcher_->processes()));
    }

    Watcher* watcher_;
    std::uint64_t process_;
    std::shared_ptr<const Moment> moment_;  ///< the last one sent
    std::uint64_t entry_ = 0;               ///< the number of the last entry sent
    std::uint64_t list_version_ = 0;
    bool ended_ = false;
};

inline Refusal no_token() {
    return {401, "send the token of --token-file as Authorization: Bearer, or open the page"};
}

/// A generated module of the page: the table of metrics, indexed by what they belong to and by
/// name.
inline std::string metrics_module() {
    nlohmann::ordered_json table;
    for (const MetricDescription& metric : describe_metrics()) {
        table[metric.of][metric.name] = {
            {"unit", metric.unit}, {"sentence", metric.sentence}, {"pytorch", metric.pytorch}};
    }
    return "export const metrics = " + table.dump() + ";\n";
}

inline constexpr page::Asset no_page{
    "/", "text/html; charset=utf-8",
    "<!DOCTYPE html>\n<html lang=\"en\">\n<title>tensorpool</title>\n"
    "<h1>The page is not built in</h1>\n"
    "<p>This tensorpool was built without npm, which provides the charts of the page. "
    "Install npm and rebuild, or use <code>tensorpool top</code>.</p>\n"
    "<p>Available: <a href=\"/metrics\">/metrics</a> for Prometheus, "
    "<a href=\"/api/processes\">/api/processes</a>, "
    "<code>/api/snapshot?process=N</code> and <code>/api/stream?process=N</code>.</p>\n"
    "</html>\n"};

/// Returns the file at a path; null if there is none.
inline const page::Asset* find_asset(std::string_view path) {
    static const std::string module = metrics_module();
    static const page::Asset metrics{"/metrics.js", "text/javascript; charset=utf-8", module};
    if (path == "/" && page::find("/") == nullptr) return &no_page;
    return path == metrics.path ? &metrics : page::find(path);
}

/// Returns a file of the page. These files are the same for all users and contain no statistics, so
/// they are served without a token. They include the form that prompts for it. The status of the
/// page itself is still "unauthorized", as that of every request without the token.
inline Response file_of_page(const page::Asset& asset, bool is_admitted) {
    Response response{.type = std::string(asset.type), .body = std::string(asset.content)};
    if (!is_admitted) {
        response.status = 401;
        response.headers = no_token().response().headers;
    }
    return response;
}

/// All functions may be called from any thread.
class StatisticsSite {
public:
    /// Both must outlive this object.
    StatisticsSite(Watcher& watcher, const Gate& gate) : watcher_(watcher), gate_(gate) {}

    /// Throws Refusal.
    Response answer(const Request& request) {
        gate_.check(request);
        if (request.method == "POST") return answer_post(request);
        if (const page::Asset* const asset = find_asset(request.path)) {
            return file_of_page(*asset, request.path != "/" || gate_.admits(request));
        }
        if (!gate_.admits(request)) throw no_token();
        return answer_data(request);
    }

private:
    Response answer_post(const Request& request) {
        if (request.path == "/api/session") return session(request);
        if (!gate_.admits(request)) throw no_token();
        if (request.path == "/api/holders") return holders_.answer(request, gate_.wants_token());
        throw Refusal(405, "only /api/session and /api/holders accept POST");
    }
    Response answer_data(const Request& request) {
        if (request.path == "/api/processes") return {.body = to_json(watcher_.processes())};
        if (request.path == "/api/snapshot") {
            return {.body = watcher_.view(find_process(watcher_, request)).value().moment->json()};
        }
        if (request.path == "/api/stream") return stream(request);
        if (request.path == "/metrics") return metrics();
        if (ProfileAnswers::has(request.path))
            return profiles_.answer(request, gate_.wants_token());
        throw Refusal(404,
                      "available: /, /metrics, /flame-graph, /api/processes, /api/snapshot, "
                      "/api/stream, /api/profile and /api/profile/times, and by POST /api/holders");
    }
    Response session(const Request& request) const {
        const std::string type = lower(request.header("content-type"));
        if (trimmed(std::string_view(type).substr(0, type.find(';'))) !=
            "application/x-www-form-urlencoded") {
            throw Refusal(415, "send token=… as application/x-www-form-urlencoded");
        }
        Response response{.status = 204};
        if (!gate_.wants_token()) return response;
        if (!gate_.is_token(read_parameters(request.body)["token"])) throw no_token();
        response.headers["Set-Cookie"] = gate_.cookie();
        return response;
    }
    Response metrics() {
        std::vector<ProcessSnapshot> snapshots;
        for (const auto& moment : watcher_.running()) snapshots.push_back(moment->snapshot());
        std::vector<MetricFamily> families = metric_families(snapshots);
        if (gate_.wants_token()) {
            const std::vector<MetricFamily> sites = profiles_.metrics();
            families.insert(families.end(), sites.begin(), sites.end());
        }
        return {.type = "text/plain; version=0.0.4; charset=utf-8",
                .body = to_prometheus(families)};
    }
    Response stream(const Request& request) {
        const auto events =
            std::make_shared<EventStream>(watcher_, find_process(watcher_, request));
        return {.type = "text/event-stream",
                .headers = {{"X-Accel-Buffering", "no"}},
                .next = [events] { return events->next(); }};
    }

    Watcher& watcher_;
    const Gate& gate_;
    ProfileAnswers profiles_{watcher_};
    HolderAnswers holders_{watcher_};
};

template <class Clock>
std::uint64_t nanoseconds() {
    const auto since = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    return static_cast<std::uint64_t>(since);
}

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
    Service(Processes& processes, const Options& options)
        : server_(
              options.address, [this](const Request& request) { return site_.answer(request); },
              options.limits),
          watcher_(processes, options.token.empty() ? KeepProfiles::no : KeepProfiles::yes),
          gate_(options.address, options.token, server_.port()),
          site_(watcher_, gate_) {
        take_round();
        const std::chrono::milliseconds period = options.period;
        rounds_ = std::jthread(
            [this, period](const std::stop_token& stop) { take_rounds(stop, period); });
        answers_ = std::jthread([this](const std::stop_token& stop) {
            const std::stop_callback end(stop, [this] { server_.stop(); });
            server_.run();
        });
    }

    int port() const { return server_.port(); }

private:
    /// A round that fails, for example for lack of memory, is skipped.
    void take_round() {
        try {
            watcher_.round({nanoseconds<std::chrono::steady_clock>(),
                            nanoseconds<std::chrono::system_clock>()});
            server_.wake();
        } catch (const std::exception& error) {
            print_error(fmt::format("tensorpool: serve: the processes could not be read: {}",
                                    error.what()));
        }
    }
    void take_rounds(const std::stop_token& stop, std::chrono::milliseconds period) {
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        for (auto due = std::chrono::steady_clock::now();; take_round()) {
            due = std::max(due + period, std::chrono::steady_clock::now());
            stopped.wait_until(lock, stop, due, [] { return false; });
            if (stop.stop_requested()) return;
        }
    }

    HttpServer server_;
    Watcher watcher_;
    Gate gate_;
    StatisticsSite site_;
    std::jthread rounds_;
    std::jthread answers_;
};

}  // namespace tensorpool::command::serve
