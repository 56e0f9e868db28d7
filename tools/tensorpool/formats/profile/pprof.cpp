// The messages of https://github.com/google/pprof/blob/main/proto/profile.proto. The numbers of
// fields are from there.

#include <fstream>

#include <nlohmann/json.hpp>

#include "common/settings.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::profile {
namespace {

// Readers subtract 1 from addresses, so symbols are placed apart.
constexpr std::uint64_t distance = 0x1000;

/// Returns a name that fits on one line.
std::string one_line(const std::string& name) {
    std::string text = valid_utf8(name);
    std::ranges::replace_if(
        text, [](char character) { return static_cast<unsigned char>(character) < ' '; }, '?');
    return text;
}

// Two dashes would separate an inlined function from its caller.
std::string clean(const std::string& name) {
    std::string text = one_line(name);
    for (std::size_t at = 0; (at = text.find("--", at)) != std::string::npos;) {
        text.erase(at, 1);
    }
    return text.empty() ? "?" : text;
}

struct SampleType {
    Value value;
    const char* blocks;
    const char* bytes;
};
constexpr std::array sample_types = {
    SampleType{Value::allocated, "alloc_objects", "alloc_space"},
    SampleType{Value::peak, "peak_objects", "peak_space"},
    SampleType{Value::live, "inuse_objects", "inuse_space"},
};

// Values are signed.
std::uint64_t limited(std::uint64_t value) {
    return std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max());
}

class Writer {
public:
    explicit Writer(const NamedProfile& named) : named_(named) { index_of(""); }

    std::string write() {
        for (const SampleType& type : sample_types) {
            profile_.add(1, value_type(type.blocks, "count"));
            profile_.add(1, value_type(type.bytes, "bytes"));
            if (type.value == named_.value) profile_.add(14, index_of(type.bytes));
        }
        for (const ProfileSite& site : named_.profile.sites) profile_.add(2, sample(site));
        profile_.add(9, limited(named_.profile.time_unix_ns));
        profile_.add(11, value_type("space", "bytes"));
        profile_.add(12, limited(named_.profile.interval));
        for (const std::string* const text : in_order()) profile_.add(6, *text);
        return profile_.bytes();
    }

private:
    std::uint64_t index_of(const std::string& text) {
        return strings_.try_emplace(valid_utf8(text), strings_.size()).first->second;
    }
    std::vector<const std::string*> in_order() const {
        std::vector<const std::string*> texts(strings_.size());
        for (const auto& [text, index] : strings_) texts[index] = &text;
        return texts;
    }

    ProtocolBuffer value_type(const char* type, const char* unit) {
        ProtocolBuffer message;
        message.add(1, index_of(type));
        message.add(2, index_of(unit));
        return message;
    }

    ProtocolBuffer sample(const ProfileSite& site) {
        std::vector<std::uint64_t> calls;
        for (const std::uint32_t index : site.stack)
            calls.push_back(location(named_.frames[index]));
        if (calls.empty()) calls.push_back(without_stack());
        std::ranges::reverse(calls);
        std::vector<std::uint64_t> values;
        for (const SampleType& type : sample_types) {
            values.push_back(blocks_of(site, type.value));
            values.push_back(limited(bytes_of(site, type.value)));
        }
        ProtocolBuffer message;
        message.add(1, calls);
        message.add(2, values);
        return message;
    }

    std::uint64_t without_stack() {
        symbols::FrameName name;
        name.location.function = stack_of(named_, {})[0];
        return location(name);
    }

    /// Returns the number of a location. A new one is added with its function.
    std::uint64_t location(const symbols::FrameName& frame) {
        const std::uint64_t called = function(frame);
        const auto line = static_cast<std::uint64_t>(std::max(frame.location.line, 0));
        const auto [at, is_new] =
            locations_.try_emplace(std::tuple(called, line), locations_.size() + 1);
        if (!is_new) return at->second;
        ProtocolBuffer lines;
        lines.add(1, called);
        lines.add(2, line);
        ProtocolBuffer message;
        message.add(1, at->second);
        message.add(4, lines);
        profile_.add(4, message);
        return at->second;
    }

    std::uint64_t function(const symbols::FrameName& frame) {
        const bool is_known = !frame.location.function.empty();
        const std::uint64_t name =
            index_of(is_known ? frame.location.function : to_short_text(frame));
        const std::uint64_t file =
            index_of(frame.location.file.empty() ? frame.module : frame.location.file);
        const auto [at, is_new] =
            functions_.try_emplace(std::tuple(name, file), functions_.size() + 1);
        if (!is_new) return at->second;
        ProtocolBuffer message;
        message.add(1, at->second);
        message.add(2, name);
        message.add(3, name);
        message.add(4, file);
        profile_.add(5, message);
        return at->second;
    }

    using Numbers = std::map<std::tuple<std::uint64_t, std::uint64_t>, std::uint64_t>;
    const NamedProfile& named_;
    ProtocolBuffer profile_;
    std::map<std::string, std::uint64_t> strings_;
    Numbers locations_;  // by function and line
    Numbers functions_;  // by name and file
};

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

std::string counts(const HeapSum& sum) {
    return fmt::format("{:6}: {:8} [{:6}: {:8}] @", sum.blocks, sum.bytes, sum.all_blocks,
                       sum.all_bytes);
}

void NamedHeap::add(const HeapSum& sum, const std::vector<std::string>& innermost_first) {
    all_ += sum;
    lines_ += counts(sum);
    // Readers subtract 1 from return addresses.
    std::uint64_t beyond = 0;
    for (const std::string& name : innermost_first) {
        lines_ += fmt::format(" {:#x}", address_of(name) + beyond);
        beyond = 1;
    }
    lines_ += '\n';
}

std::string NamedHeap::text(std::string_view kind) const {
    std::string text = "--- symbol\nbinary=recording\n";
    for (const auto& [name, address] : addresses_) {
        text += fmt::format("{:#018x} {}\n", address, name);
    }
    return text + fmt::format("---\n--- heap\nheap profile: {} {}\n{}\nMAPPED_LIBRARIES:\n",
                              counts(all_), kind, lines_);
}

std::uint64_t NamedHeap::address_of(const std::string& name) {
    const std::uint64_t next = (addresses_.size() + 1) * distance;
    return addresses_.try_emplace(clean(name), next).first->second;
}

std::string to_pprof(const NamedProfile& named) {
    return Writer(named).write();
}

std::string to_pprof_legacy(const NamedProfile& named) {
    NamedHeap heap;
    for (const ProfileSite& site : named.profile.sites) {
        std::vector<std::string> calls = stack_of(named, site);
        std::ranges::reverse(calls);
        heap.add({.blocks = blocks_of(site, named.value),
                  .bytes = bytes_of(site, named.value),
                  .all_blocks = blocks_of(site, Value::allocated),
                  .all_bytes = site.allocated_bytes},
                 calls);
    }
    return heap.text("heapprofile");
}

std::string to_collapsed(const NamedProfile& named) {
    std::map<std::string, std::uint64_t> sums;  // stacks may differ in nothing that has a name
    for (const ProfileSite& site : named.profile.sites) {
        const std::uint64_t bytes = bytes_of(site, named.value);
        if (bytes == 0) continue;
        std::string stack;
        for (const std::string& call : stack_of(named, site)) {
            if (!stack.empty()) stack += ';';
            std::string name = one_line(call);
            std::ranges::replace(name, ';', ':');
            stack += name;
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
