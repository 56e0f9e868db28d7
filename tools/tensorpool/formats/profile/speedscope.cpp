#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::profile {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const symbols::FrameName& frame) {
    Json json = {{"name", valid_utf8(to_short_text(frame))}};
    if (!frame.location.file.empty()) {
        json["file"] = valid_utf8(frame.location.file);
        json["line"] = frame.location.line;
    }
    return json;
}

}  // namespace

std::string to_speedscope(const NamedProfile& named) {
    Json frames = Json::array();
    for (const symbols::FrameName& frame : named.frames) frames.push_back(json_of(frame));
    const auto without_stack = frames.size();
    frames.push_back({{"name", stack_of(named, {})[0]}});
    Json samples = Json::array();
    Json weights = Json::array();
    for (const ProfileSite& site : named.profile.sites) {
        if (bytes_of(site, named.value) == 0) continue;
        samples.push_back(site.stack);
        if (site.stack.empty()) samples.back().push_back(without_stack);
        weights.push_back(bytes_of(site, named.value));
    }
    const std::string name =
        fmt::format("{} bytes of {}", name_of(named.value), valid_utf8(named.profile.process_name));
    const Json profile = {{"type", "sampled"},
                          {"name", name},
                          {"unit", "bytes"},
                          {"startValue", 0},
                          {"endValue", named.total(named.value)},
                          {"samples", std::move(samples)},
                          {"weights", std::move(weights)}};
    const Json file = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                       {"shared", {{"frames", std::move(frames)}}},
                       {"profiles", Json::array({profile})},
                       {"name", name},
                       {"exporter", "tensorpool"}};
    return file.dump() + '\n';
}

}  // namespace tensorpool::command::profile
