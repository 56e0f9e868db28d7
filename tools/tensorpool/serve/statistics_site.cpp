#include "serve/statistics_site.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tensorpool/metrics.hpp>

#include "page_assets.hpp"
#include "serve/http/event_stream.hpp"
#include "serve/json.hpp"

namespace tensorpool::command::serve {
namespace {

Refusal no_token() {
    return {401, "send the token of --token-file as Authorization: Bearer, or open the page"};
}

/// A generated module of the page: the table of metrics, indexed by what they belong to and by
/// name.
std::string metrics_module() {
    nlohmann::ordered_json table;
    for (const MetricDescription& metric : describe_metrics()) {
        table[metric.of][metric.name] = {
            {"unit", metric.unit}, {"sentence", metric.sentence}, {"pytorch", metric.pytorch}};
    }
    return "export const metrics = " + table.dump() + ";\n";
}

constexpr page::Asset no_page{
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
const page::Asset* find_asset(std::string_view path) {
    static const std::string module = metrics_module();
    static const page::Asset metrics{"/metrics.js", "text/javascript; charset=utf-8", module};
    if (path == "/" && page::find("/") == nullptr) return &no_page;
    return path == metrics.path ? &metrics : page::find(path);
}

/// Returns a file of the page. These files are the same for all users and contain no statistics, so
/// they are served without a token. They include the form that prompts for it. The status of the
/// page itself is still "unauthorized", as that of every request without the token.
Response file_of_page(const page::Asset& asset, bool is_admitted) {
    Response response{.type = std::string(asset.type), .body = std::string(asset.content)};
    if (!is_admitted) {
        response.status = 401;
        response.headers = no_token().response().headers;
    }
    return response;
}

}  // namespace

Response StatisticsSite::answer(const Request& request) {
    gate_.check(request);
    if (request.method == "POST") return answer_post(request);
    if (const page::Asset* const asset = find_asset(request.path)) {
        return file_of_page(*asset, request.path != "/" || gate_.admits(request));
    }
    if (!gate_.admits(request)) throw no_token();
    return answer_data(request);
}

Response StatisticsSite::answer_post(const Request& request) {
    if (request.path == "/api/session") return session(request);
    if (!gate_.admits(request)) throw no_token();
    if (request.path == "/api/holders") return holders_.answer(request, gate_.wants_token());
    throw Refusal(405, "only /api/session and /api/holders accept POST");
}

Response StatisticsSite::session(const Request& request) const {
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

Response StatisticsSite::answer_data(const Request& request) {
    if (request.path == "/api/processes") return {.body = to_json(watcher_.processes())};
    if (request.path == "/api/snapshot") {
        return {.body = watcher_.view(find_process(watcher_, request)).value().moment->json()};
    }
    if (request.path == "/api/stream") return stream(request);
    if (request.path == "/metrics") return metrics();
    if (ProfileAnswers::has(request.path)) return profiles_.answer(request, gate_.wants_token());
    throw Refusal(404,
                  "available: /, /metrics, /flame-graph, /api/processes, /api/snapshot, "
                  "/api/stream, /api/profile and /api/profile/times, and by POST /api/holders");
}

Response StatisticsSite::metrics() {
    std::vector<ProcessSnapshot> snapshots;
    for (const auto& moment : watcher_.running()) snapshots.push_back(moment->snapshot());
    std::vector<MetricFamily> families = metric_families(snapshots);
    if (gate_.wants_token()) {
        const std::vector<MetricFamily> sites = profiles_.metrics();
        families.insert(families.end(), sites.begin(), sites.end());
    }
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = to_prometheus(families)};
}

Response StatisticsSite::stream(const Request& request) {
    const auto events = std::make_shared<EventStream>(watcher_, find_process(watcher_, request));
    return {.type = "text/event-stream",
            .headers = {{"X-Accel-Buffering", "no"}},
            .next = [events] { return events->next(); }};
}

}  // namespace tensorpool::command::serve
