#include "serve/assets.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include <tensorpool/metrics.hpp>

#if defined(TENSORPOOL_COMMAND_HAS_PAGE)
#include "page_assets.hpp"
#endif

namespace tensorpool::command::serve {
#if defined(TENSORPOOL_COMMAND_HAS_PAGE)
namespace {

/// A generated module of the page: the table of metrics, indexed by what they belong to and by
/// name.
const std::string& metrics_module() {
    static const std::string module = [] {
        nlohmann::ordered_json table;
        for (const MetricDescription& metric : describe_metrics()) {
            table[metric.of][metric.name] = {
                {"unit", metric.unit}, {"sentence", metric.sentence}, {"pytorch", metric.pytorch}};
        }
        return "export const metrics = " + table.dump() + ";\n";
    }();
    return module;
}

}  // namespace

std::optional<Asset> find_asset(std::string_view path) {
    if (path == "/metrics.js") return Asset{"text/javascript; charset=utf-8", metrics_module()};
    for (const page::Asset& asset : page::assets()) {
        if (asset.path == path || (path == "/" && asset.path == "/index.html")) {
            return Asset{asset.type, asset.content};
        }
    }
    return std::nullopt;
}

#else

std::optional<Asset> find_asset(std::string_view path) {
    if (path != "/") return std::nullopt;
    return Asset{
        "text/html; charset=utf-8",
        "<!DOCTYPE html>\n<html lang=\"en\">\n<title>tensorpool</title>\n"
        "<h1>The page is not built in</h1>\n"
        "<p>This tensorpool was built without npm, which provides the charts of the page. "
        "Install npm and rebuild, or use <code>tensorpool top</code>.</p>\n"
        "<p>Available: <a href=\"/metrics\">/metrics</a> for Prometheus, "
        "<a href=\"/api/processes\">/api/processes</a>, "
        "<code>/api/snapshot?process=N</code> and <code>/api/stream?process=N</code>.</p>\n"
        "</html>\n"};
}

#endif

}  // namespace tensorpool::command::serve
