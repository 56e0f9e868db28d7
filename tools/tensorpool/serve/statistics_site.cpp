#include "serve/statistics_site.hpp"

#include <charconv>
#include <chrono>
#include <optional>

#include "metrics/metrics_text.hpp"
#include "serve/assets.hpp"
#include "serve/http/ascii.hpp"
#include "serve/http/event_stream.hpp"
#include "serve/json.hpp"

namespace tensorpool::command::serve {
namespace {

using httplib::Request;
using httplib::Response;

void refuse(Response& response, int status, std::string_view message) {
    response.status = status;
    response.set_content(error_json(message), "application/json");
}

void refuse_without_token(Response& response) {
    response.set_header("WWW-Authenticate", "Bearer realm=\"tensorpool\"");
    refuse(response, 401,
           "send the token of --token-file as Authorization: Bearer, or open the page");
}

std::optional<std::uint64_t> process_in(const Request& request) {
    const std::string text = request.get_param_value("process");
    std::uint64_t process = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), process);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(process) : std::nullopt;
}

/// Returns the requested process if there are statistics of it. Otherwise answers the request with
/// an error.
std::optional<std::uint64_t> find(const Watcher& watcher, const Request& request,
                                  Response& response) {
    const std::optional<std::uint64_t> process = process_in(request);
    if (!process) {
        refuse(response, 400, "no process given: add ?process= with an id from /api/processes");
    } else if (!watcher.view(*process)) {
        refuse(response, 404, watcher.why_not(*process));
    } else {
        return process;
    }
    return std::nullopt;
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

bool StatisticsSite::answer_post(const Request& request, Response& response) const {
    if (request.path != "/api/session") {
        if (!gate_.admits(request)) {
            refuse_without_token(response);
        } else {
            refuse(response, 405, "only /api/session accepts POST");
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
    } else {
        refuse(response, 404,
               "available: /, /metrics, /api/processes, /api/snapshot and /api/stream");
    }
}

void StatisticsSite::send_metrics(Response& response) const {
    std::vector<ProcessSnapshot> snapshots;
    for (const auto& moment : watcher_.running()) snapshots.push_back(moment->snapshot());
    response.set_content(metrics_text(snapshots), metrics_content_type);
}

void StatisticsSite::send_snapshot(const Request& request, Response& response) const {
    const std::optional<std::uint64_t> process = find(watcher_, request, response);
    if (!process) return;
    if (const std::optional<View> view = watcher_.view(*process)) {
        response.set_content(view->moment->json(), "application/json");
    }
}

void StatisticsSite::send_stream(const Request& request, Response& response) {
    const std::optional<std::uint64_t> process = find(watcher_, request, response);
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
