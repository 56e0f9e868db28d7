#include "serve/statistics_site.hpp"

#include <chrono>
#include <optional>
#include <vector>

#include "metrics/metrics_text.hpp"
#include "serve/assets.hpp"
#include "serve/http/ascii.hpp"
#include "serve/http/event_stream.hpp"
#include "serve/json.hpp"
#include "serve/requests.hpp"

namespace tensorpool::command::serve {
namespace {

using httplib::Request;
using httplib::Response;

void refuse_without_token(Response& response) {
    response.set_header("WWW-Authenticate", "Bearer realm=\"tensorpool\"");
    refuse(response, 401,
           "send the token of --token-file as Authorization: Bearer, or open the page");
}

}  // namespace

httplib::Headers StatisticsSite::headers() const {
    return {{"Content-Security-Policy",
             "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
             "object-src 'none'"},
            {"X-Content-Type-Options", "nosniff"},
            {"X-Frame-Options", "DENY"},
            {"Referrer-Policy", "no-referrer"},
            {"Cross-Origin-Resource-Policy", "same-origin"},
            {"Cross-Origin-Opener-Policy", "same-origin"},
            {"Cache-Control", "no-store"}};
}

bool StatisticsSite::answer(const Request& request, Response& response) {
    if (const std::optional<Refusal> refusal = gate_.refuse(request)) {
        refuse(response, refusal->status, refusal->message);
        return true;
    }
    if (request.method == "POST") return answer_post(request, response);
    if (find_asset(request.path)) {
        answer_asset(request, response);
    } else if (!gate_.admits(request)) {
        refuse_without_token(response);
    } else {
        answer_data(request, response);
    }
    return true;
}

/// Answers with a file of the page. These files are the same for all users and contain no
/// statistics, so they are served without a token. They include the form that prompts for it. The
/// status of the page itself is still "unauthorized", as that of every request without the token.
void StatisticsSite::answer_asset(const Request& request, Response& response) const {
    const std::optional<Asset> asset = find_asset(request.path);
    response.set_content(asset->content.data(), asset->content.size(), std::string(asset->type));
    if (request.path != "/" || gate_.admits(request)) return;
    response.status = 401;
    response.set_header("WWW-Authenticate", "Bearer realm=\"tensorpool\"");
}

bool StatisticsSite::answer_post(const Request& request, Response& response) {
    if (request.path != "/api/session") {
        if (!gate_.admits(request)) {
            refuse_without_token(response);
        } else if (request.path == "/api/holders") {
            holders_.answer(request, response, gate_.wants_token());
        } else {
            refuse(response, 405, "only /api/session and /api/holders accept POST");
        }
        return true;
    }
    const std::string type = request.get_header_value("Content-Type");
    if (equal_letters(trimmed(type.substr(0, type.find(';'))),
                      "application/x-www-form-urlencoded")) {
        return false;
    }
    refuse(response, 415, "send token=… as application/x-www-form-urlencoded");
    return true;
}

void StatisticsSite::take(const Request& request, Response& response) {
    if (gate_.wants_token() && !gate_.is_token(request.get_param_value("token"))) {
        return refuse_without_token(response);
    }
    if (gate_.wants_token()) response.set_header("Set-Cookie", gate_.cookie());
    response.status = 204;
}

void StatisticsSite::answer_data(const Request& request, Response& response) {
    if (request.path == "/api/processes") {
        response.set_content(to_json(watcher_.processes()), "application/json");
    } else if (request.path == "/api/snapshot") {
        send_snapshot(request, response);
    } else if (request.path == "/api/stream") {
        send_stream(request, response);
    } else if (request.path == "/metrics") {
        send_metrics(response);
    } else if (!profiles_.answer(request, response, gate_.wants_token())) {
        refuse(response, 404,
               "available: /, /metrics, /flame-graph, /api/processes, /api/snapshot, /api/stream, "
               "/api/profile and /api/profile/times, and by POST /api/holders");
    }
}

void StatisticsSite::send_metrics(Response& response) {
    std::vector<ProcessSnapshot> snapshots;
    for (const auto& moment : watcher_.running()) snapshots.push_back(moment->snapshot());
    std::vector<MetricFamily> sites;
    if (gate_.wants_token()) sites = profiles_.metrics();
    response.set_content(metrics_text(snapshots, sites), metrics_content_type);
}

void StatisticsSite::send_snapshot(const Request& request, Response& response) const {
    const std::optional<std::uint64_t> process = find_process(watcher_, request, response);
    if (!process) return;
    if (const std::optional<View> view = watcher_.view(*process)) {
        response.set_content(view->moment->json(), "application/json");
    }
}

void StatisticsSite::send_stream(const Request& request, Response& response) {
    const std::optional<std::uint64_t> process = find_process(watcher_, request, response);
    if (!process) return;
    const auto stream = std::make_shared<EventStream>(watcher_, *process);
    const auto send = [this, stream](std::size_t, httplib::DataSink& sink) {
        // Detects here that the client has closed the connection, rather than when the system's
        // buffers are full.
        if (!sink.is_writable()) return false;
        const std::uint64_t rounds = watcher_.rounds();
        std::string events = stream->next();
        if (events.empty()) {
            watcher_.wait(rounds, std::chrono::seconds(5));
            events = stream->next();
        }
        // A comment keeps proxies from closing a silent connection.
        if (events.empty()) events = ":\n\n";
        return sink.write(events.data(), events.size());
    };
    response.set_header("X-Accel-Buffering", "no");
    response.set_chunked_content_provider("text/event-stream", send);
}

}  // namespace tensorpool::command::serve
