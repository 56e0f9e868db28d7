#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "leaks/report.hpp"

namespace tensorpool::command::leaks {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Report& report, const Row& row) {
    Json json = {{"verdict", to_string(row.judged.verdict)},
                 {"bytes_per_iteration", row.slope},
                 {"bytes_per_iteration_uncertainty", row.slope_uncertainty},
                 {"growth_bytes", row.judged.growth},
                 {"growth_uncertainty_bytes", row.judged.uncertainty},
                 {"live_bytes", row.site.live_bytes},
                 {"oldest_iterations", row.oldest},
                 {"median_age_iterations", row.median_age},
                 {"live_bytes_by_profile", row.live},
                 {"line", valid_utf8(profile::line_of(report.named, row.site))}};
    json["stack"] = Json::array();
    for (const std::string& call : profile::stack_of(report.named, row.site)) {
        json["stack"].push_back(valid_utf8(call));
    }
    return json;
}

}  // namespace

std::string to_json(const Report& report) {
    const HeapProfile& profile = report.named.profile;
    Json json = {
        {"process", profile.process},      {"process_name", valid_utf8(profile.process_name)},
        {"iterations", report.iterations}, {"profiles", report.profiles},
        {"seconds", report.seconds},       {"interval", profile.interval},
        {"leaks", report.leaks()},         {"steady_sites", report.steady}};
    json["sites"] = Json::array();
    for (const Row& row : report.rows) json["sites"].push_back(json_of(report, row));
    return json.dump();
}

}  // namespace tensorpool::command::leaks
