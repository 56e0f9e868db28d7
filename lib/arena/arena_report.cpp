// Reports of an arena's object register, as text and JSON.

#include <algorithm>
#include <map>

#include "arena/object_register.hpp"
#include "base/report_text.hpp"
#include "base/text.hpp"

namespace tensorpool {

using base::add_line;
using base::BytesText;
using base::quoted;

namespace arena {
namespace {

using Word = std::string ObjectDescription::*;

std::vector<ObjectGroup> group_by(Word word, const std::vector<ArenaObject>& objects,
                                  std::size_t all_bytes) {
    std::map<std::string, ObjectGroup> groups;
    for (const ArenaObject& object : objects) {
        ObjectGroup& group = groups[object.description.*word];
        if (object.view_of != 0) {
            ++group.views;
        } else {
            ++group.count;
            group.bytes += object.description.bytes;
        }
    }
    std::vector<ObjectGroup> sorted;
    for (auto& [name, group] : groups) {
        group.name = name;
        group.percent = base::percent(group.bytes, all_bytes);
        sorted.push_back(std::move(group));
    }
    std::stable_sort(
        sorted.begin(), sorted.end(),
        [](const ObjectGroup& one, const ObjectGroup& other) { return one.bytes > other.bytes; });
    return sorted;
}

}  // namespace

ArenaAnalysis analyze(const std::string& arena, std::size_t used,
                      const std::vector<ArenaObject>& objects) {
    ArenaAnalysis analysis;
    analysis.arena = arena;
    analysis.used = used;
    for (const ArenaObject& object : objects) {
        if (object.view_of != 0) {
            ++analysis.views;
        } else {
            ++analysis.count;
            analysis.bytes += object.description.bytes;
        }
    }
    analysis.by_kind = group_by(&ObjectDescription::kind, objects, analysis.bytes);
    analysis.by_element_type = group_by(&ObjectDescription::element_type, objects, analysis.bytes);
    return analysis;
}

}  // namespace arena

namespace {

std::string percent_text(double percent) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f", percent);
    return text;
}

std::string groups_json(const std::vector<ObjectGroup>& groups) {
    std::string out;
    for (const ObjectGroup& group : groups) {
        if (!out.empty()) out += ',';
        out += "{\"name\":" + quoted(group.name.c_str()) +
               ",\"count\":" + std::to_string(group.count) +
               ",\"views\":" + std::to_string(group.views) +
               ",\"bytes\":" + std::to_string(group.bytes) +
               ",\"percent\":" + percent_text(group.percent) + '}';
    }
    return '[' + out + ']';
}

void add_groups(std::string& out, const char* title, const std::vector<ObjectGroup>& groups) {
    add_line(out, "  %-20s %8s %8s %12s %8s", title, "objects", "views", "bytes", "share");
    for (const ObjectGroup& group : groups) {
        add_line(out, "  %-20.40s %8zu %8zu %12s %6.1f %%",
                 group.name.empty() ? "(none)" : group.name.c_str(), group.count, group.views,
                 BytesText(group.bytes).c_str(), group.percent);
    }
}

}  // namespace

std::string to_json(const ArenaAnalysis& analysis) {
    return "{\"arena\":" + quoted(analysis.arena.c_str()) +
           ",\"used\":" + std::to_string(analysis.used) +
           ",\"count\":" + std::to_string(analysis.count) +
           ",\"views\":" + std::to_string(analysis.views) +
           ",\"bytes\":" + std::to_string(analysis.bytes) +
           ",\"by_kind\":" + groups_json(analysis.by_kind) +
           ",\"by_element_type\":" + groups_json(analysis.by_element_type) + '}';
}

std::string to_text(const ArenaAnalysis& analysis) {
    std::string out;
    add_line(out, "tensorpool: arena '%.47s': %zu objects of %s and %zu views; %s in use",
             analysis.arena.c_str(), analysis.count, BytesText(analysis.bytes).c_str(),
             analysis.views, BytesText(analysis.used).c_str());
    if (analysis.count + analysis.views == 0) return out;
    add_groups(out, "kind", analysis.by_kind);
    add_groups(out, "element type", analysis.by_element_type);
    return out;
}

}  // namespace tensorpool
