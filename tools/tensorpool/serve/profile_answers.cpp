#include "serve/profile_answers.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "formats/profile/formats.hpp"
#include "formats/profile/site_metrics.hpp"
#include "serve/requests.hpp"

namespace tensorpool::command::serve {
namespace {

using httplib::Request;
using httplib::Response;

constexpr std::uint64_t ns_per_ms = 1'000'000;

/// Returns the times in milliseconds, as JavaScript counts them. Rounded up, so that the profile of
/// that time is found.
std::string times_json(const std::vector<std::uint64_t>& times_ns) {
    nlohmann::json times = nlohmann::json::array();
    for (const std::uint64_t ns : times_ns) times.push_back(ns / ns_per_ms + 1);
    return nlohmann::json{{"times_unix_ms", std::move(times)}}.dump();
}

std::uint64_t time_in(const Request& request, const char* name) {
    return number_in(request, name).value_or(0) * ns_per_ms;
}

}  // namespace

bool ProfileAnswers::answer(const Request& request, Response& response, bool has_token) {
    const std::string& path = request.path;
    if (path != "/api/profile" && path != "/api/profile/times" && path != "/flame-graph") {
        return false;
    }
    if (!has_token) {
        refuse(response, 403,
               "call stacks are only shown if tensorpool serve was started with --token-file, "
               "because any user of the machine can connect");
    } else if (path == "/api/profile/times") {
        const auto process = find_process(watcher_, request, response);
        if (process) {
            response.set_content(times_json(watcher_.profile_times(*process)), "application/json");
        }
    } else if (path == "/flame-graph") {
        send_flame_graph(request, response);
    } else if (const Named profile = find(request, response)) {
        response.set_content(to_json(*profile).dump(), "application/json");
    }
    return true;
}

/// The page has a policy of its own, which lets no other script run, and may stand in our page.
void ProfileAnswers::send_flame_graph(const Request& request, Response& response) {
    const Named now = find(request, response);
    if (!now) return;
    nlohmann::ordered_json before;
    if (const std::uint64_t time = time_in(request, "before"); time != 0) {
        if (const Named older = named(now->profile.process, time)) before = to_json(*older);
    }
    response.headers.erase("X-Frame-Options");
    response.headers.erase("Content-Security-Policy");
    response.set_header("Content-Security-Policy",
                        profile::flame_graph_policy() + "; frame-ancestors 'self'");
    response.set_content(to_flame_graph(*now, before), "text/html; charset=utf-8");
}

ProfileAnswers::Named ProfileAnswers::find(const Request& request, Response& response) {
    const auto process = find_process(watcher_, request, response);
    if (!process) return std::nullopt;
    Named found = named(*process, time_in(request, "time"));
    if (!found) {
        refuse(response, 404,
               fmt::format("no heap profile of process {} is kept for this time; "
                           "/api/profile/times lists the times",
                           *process));
    }
    return found;
}

ProfileAnswers::Named ProfileAnswers::named(std::uint64_t process, std::uint64_t time_unix_ns) {
    std::optional<HeapProfile> profile = watcher_.profile(process, time_unix_ns);
    if (!profile) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return names_[process].name(std::move(*profile), profile::Value::live);
}

std::vector<MetricFamily> ProfileAnswers::metrics() {
    profile::SiteMetrics metrics;
    std::set<std::uint64_t> known;
    for (const ListedProcess& listed : watcher_.processes()) {
        known.insert(listed.process);
        if (listed.ended || !listed.readable) continue;
        if (const Named profile = named(listed.process, 0)) metrics.add(*profile);
    }
    const std::lock_guard lock(mutex_);
    std::erase_if(names_, [&](const auto& names) { return !known.contains(names.first); });
    return metrics.families();
}

}  // namespace tensorpool::command::serve
