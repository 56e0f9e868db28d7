#include <fmt/format.h>

#include <map>

#include <nlohmann/json.hpp>

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

Json json_of(const symbols::FrameName& frame) {
    Json json = {{"name", to_short_text(frame)}};
    if (!frame.location.file.empty()) {
        json["file"] = frame.location.file;
        json["line"] = frame.location.line;
    }
    return json;
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

}  // namespace tensorpool::command::profile
