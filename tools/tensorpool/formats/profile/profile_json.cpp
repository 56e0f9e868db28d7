#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "common/settings.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::profile {
namespace {

/// A name must fit on one line, and semicolons separate names.
std::string clean(const std::string& name) {
    std::string text = valid_utf8(name);
    std::ranges::replace(text, ';', ':');
    std::ranges::replace_if(
        text, [](char character) { return static_cast<unsigned char>(character) < ' '; }, '?');
    return text;
}

using Json = nlohmann::ordered_json;

Json named_json(const symbols::FrameName& frame) {
    Json json = {{"name", to_short_text(frame)}};
    if (!frame.location.file.empty()) {
        json["file"] = frame.location.file;
        json["line"] = frame.location.line;
    }
    return json;
}

Json json_of(const symbols::FrameName& frame) {
    return {{"name", valid_utf8(to_short_text(frame))},
            {"function", valid_utf8(frame.location.function)},
            {"file", valid_utf8(frame.location.file)},
            {"line", frame.location.line},
            {"module", frame.is_python ? "" : valid_utf8(frame.module)},
            {"offset", frame.is_python ? 0 : frame.offset},
            {"internal", frame.internal}};
}

Json json_of(const ProfileSite& site) {
    return {{"id", site.id},
            {"samples", site.samples},
            {"live_bytes", site.live_bytes},
            {"live_blocks", site.live_blocks},
            {"peak_bytes", site.peak_bytes},
            {"peak_blocks", site.peak_blocks},
            {"allocated_bytes", site.allocated_bytes},
            {"allocated_blocks", site.allocated_blocks},
            {"lifetimes", site.lifetimes},
            {"stack", site.stack}};
}

bool has_form(const Json& json) {
    return json.is_object() && json.contains("frames") && json["frames"].is_array() &&
           json.contains("sites") && json["sites"].is_array();
}

}  // namespace

std::string to_collapsed(const NamedProfile& named) {
    std::map<std::string, std::uint64_t> sums;  // stacks may differ in nothing that has a name
    for (const ProfileSite& site : named.profile.sites) {
        const std::uint64_t bytes = bytes_of(site, named.value);
        if (bytes == 0) continue;
        std::string stack;
        for (const std::string& call : stack_of(named, site)) {
            if (!stack.empty()) stack += ';';
            stack += clean(call);
        }
        sums[stack] += bytes;
    }
    std::string text;
    for (const auto& [stack, bytes] : sums) text += fmt::format("{} {}\n", stack, bytes);
    return text;
}

std::string to_speedscope(const NamedProfile& named) {
    Json frames = Json::array();
    for (const symbols::FrameName& frame : named.frames) frames.push_back(named_json(frame));
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
        fmt::format("{} bytes of {}", name_of(named.value), named.profile.process_name);
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
    return json_line(file) + '\n';
}

Json to_json(const NamedProfile& named) {
    const HeapProfile& profile = named.profile;
    Json json = {
        {"process", profile.process},           {"process_name", valid_utf8(profile.process_name)},
        {"time_unix_ns", profile.time_unix_ns}, {"interval", profile.interval},
        {"peak_bytes", profile.peak_bytes},     {"peak_unix_ns", profile.peak_unix_ns},
        {"lost_samples", profile.lost_samples}, {"mean_distance", profile.mean_distance}};
    json["problems"] = Json::array();
    for (const std::string& problem : named.problems) {
        json["problems"].push_back(valid_utf8(problem));
    }
    json["frames"] = Json::array();
    for (const symbols::FrameName& frame : named.frames) json["frames"].push_back(json_of(frame));
    json["sites"] = Json::array();
    for (const ProfileSite& site : profile.sites) json["sites"].push_back(json_of(site));
    return json;
}

HtmlPage to_flame_graph(const NamedProfile& named, const Json& before) {
    return html_page("flame_graph.html", {{"now", to_json(named)},
                                          {"before", before},
                                          {"value", std::string(name_of(named.value))}});
}

Json read_json(const std::string& path) {
    std::ostringstream text;
    if (!(text << std::ifstream(path, std::ios::binary).rdbuf())) {
        throw CommandError(finding, fmt::format("{} cannot be read or is empty", printable(path)));
    }
    Json json = Json::parse(text.str(), nullptr, false);
    if (has_form(json)) return json;
    throw CommandError(finding, fmt::format("{} is not a profile; expected a file written by "
                                            "`tensorpool profile --json`",
                                            printable(path)));
}

}  // namespace tensorpool::command::profile
