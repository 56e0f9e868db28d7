#include "serve/profile_answers.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "formats/profile/formats.hpp"
#include "formats/profile/site_metrics.hpp"

namespace tensorpool::command::serve {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;

/// Returns the times in milliseconds, as JavaScript counts them. Rounded up, so that the profile of
/// that time is found.
std::string times_json(const std::vector<std::uint64_t>& times_ns) {
    nlohmann::json times = nlohmann::json::array();
    for (const std::uint64_t ns : times_ns) times.push_back(ns / ns_per_ms + 1);
    return nlohmann::json{{"times_unix_ms", std::move(times)}}.dump();
}

std::uint64_t time_in(const Request& request, const char* name) {
    return request.number(name).value_or(0) * ns_per_ms;
}

}  // namespace

bool ProfileAnswers::has(std::string_view path) {
    return path == "/api/profile" || path == "/api/profile/times" || path == "/flame-graph";
}

Response ProfileAnswers::answer(const Request& request, bool has_token) {
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

/// The page has a policy of its own, which lets no other script run, and may stand in our page.
Response ProfileAnswers::flame_graph(const profile::NamedProfile& now,
                                     std::uint64_t before_unix_ns) {
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
