#include <cstdio>
#include <iterator>

#include <tensorpool/context_statistics.hpp>
#include <tensorpool/snapshot.hpp>

#include "base/report_text.hpp"
#include "base/text.hpp"
#include "read/record_text.hpp"
#include "snapshot/process_table.hpp"
#include "snapshot/typed_records.hpp"

namespace tensorpool {
namespace {

using base::quoted;
using read::json_members;
using snapshots::array_of;

std::string member(const char* name, std::uint64_t value) {
    return quoted(name) + ':' + std::to_string(value);
}

std::string member(const char* name, const std::string& json) {
    return quoted(name) + ':' + json;
}

std::string json_of(const std::map<std::string, std::uint64_t>& left_out) {
    std::string out = "{";
    for (const auto& [list, number] : left_out) {
        if (out.size() > 1) out += ',';
        out += member(list.c_str(), number);
    }
    return out + '}';
}

std::string json_of(const std::vector<ThreadStatistics>& threads) {
    namespace table = snapshots::threads;
    std::string out = "[";
    for (const ThreadStatistics& thread : threads) {
        if (out.size() > 1) out += ',';
        out += '{' + member("name", quoted(thread.name.c_str())) + ',' +
               json_members(table::table, table::values_of(thread)) + '}';
    }
    return out + ']';
}

std::string head_of(const ProcessSnapshot& snapshot) {
    return member("version", snapshot.version) + ',' + member("process", snapshot.process) + ',' +
           member("process_name", quoted(snapshot.process_name.c_str())) + ',' +
           member("library_version", quoted(snapshot.library_version.c_str())) + ',' +
           member("time_ns", snapshot.time_ns) + ',' +
           member("time_unix_ns", snapshot.time_unix_ns) + ',' +
           member("consistent", snapshot.consistent ? "true" : "false");
}

using snapshots::record_of;
using snapshots::table_of;

template <class Statistics>
std::string json(const Statistics& one) {
    return read::json_of(table_of<Statistics>(), record_of(one));
}
template <class Statistics>
std::string text(const Statistics& one) {
    return read::report_of(snapshots::group_of(std::vector<Statistics>{one}));
}
std::string size(std::uint64_t bytes) {
    return base::BytesText(bytes).c_str();
}

/// Returns a duration such as "5.2 s" or "12 ms".
std::string duration_text(std::uint64_t ns) {
    const double seconds = static_cast<double>(ns) / 1e9;
    char text[32];
    std::snprintf(text, sizeof text, seconds < 1 ? "%.0f ms" : "%.1f s",
                  seconds < 1 ? seconds * 1000 : seconds);
    return text;
}

}  // namespace

std::vector<RecordGroup> record_groups(const ProcessSnapshot& snapshot) {
    using snapshots::group_of;
    std::vector<RecordGroup> groups = {
        group_of(snapshot.arenas),  group_of(snapshot.scratches, "scratches"),
        group_of(snapshot.devices), group_of(snapshot.planned),
        group_of(snapshot.budgets), group_of(snapshot.stashes),
        group_of(snapshot.scopes),  group_of(snapshot.device_streams)};
    groups.insert(groups.end(), snapshot.others.begin(), snapshot.others.end());
    return groups;
}

std::string to_json(const ProcessSnapshot& snapshot) {
    std::string out = '{' + head_of(snapshot);
    const auto add = [&](const std::string& name, const std::string& json) {
        out += ',' + member(name.c_str(), json);
    };
    namespace table = snapshots::processes;
    out += ',' + json_members(table::table, table::values_of(snapshot));
    add("left_out", json_of(snapshot.left_out));
    add("pools", array_of(snapshot.pools));
    for (const RecordGroup& group : record_groups(snapshot)) add(group.name, to_json(group));
    add("threads", json_of(snapshot.threads));
    add("entries", std::to_string(snapshot.entries));
    return out + '}';
}

std::string to_text(const Snapshot& snapshot) {
    std::string out;
    for (const PoolStatistics& pool : snapshot.pools) out += to_text(pool);
    for (const DeviceStatistics& device : snapshot.devices) out += to_text(device);
    for (const PlannedArenaStatistics& arena : snapshot.planned) out += to_text(arena);
    const std::vector<RecordGroup> groups = record_groups(snapshot);
    for (const RecordGroup& group : groups) {
        if (group.name != "devices" && group.name != "planned") out += to_text(groups, group);
    }
    return out;
}

std::string to_json(const ArenaStatistics& one) {
    return json(one);
}
std::string to_json(const DeviceStatistics& one) {
    return json(one);
}
std::string to_json(const PlannedArenaStatistics& one) {
    return json(one);
}
std::string to_json(const BudgetStatistics& one) {
    return json(one);
}
std::string to_json(const StashStatistics& one) {
    return json(one);
}
std::string to_json(const ScopeStatistics& one) {
    return json(one);
}
std::string to_json(const DeviceStreamStatistics& one) {
    return json(one);
}

std::string to_text(const ArenaStatistics& one) {
    return text(one);
}
std::string to_text(const DeviceStatistics& one) {
    return text(one);
}
std::string to_text(const PlannedArenaStatistics& one) {
    return text(one);
}

std::string to_text(const DeviceStreamStatistics& stream) {
    const std::string name =
        stream.stream == 0 ? "the default stream" : "stream " + std::to_string(stream.stream);
    const bool is_graph = stream.capture != 0;
    std::string text = (is_graph ? "graphs captured on " : "") + name;
    if (stream.held_bytes != 0) {
        text += (is_graph ? " hold " : " holds ") + size(stream.held_bytes) + ", of which " +
                size(stream.used_bytes - stream.parked_bytes) + " are in use";
        if (is_graph) text += ", until they are released";
    }
    if (stream.waiting_bytes == 0) return text;
    text += (stream.held_bytes != 0 ? "; " : ": ") + size(stream.waiting_bytes) +
            " that were freed have waited for its work";
    if (stream.waiting_ns != 0) text += " for " + duration_text(stream.waiting_ns);
    return text;
}

const char* to_string(PlannedArenaStatistics::State state) noexcept {
    constexpr const char* words[] = {"learning", "planning", "serving", "unknown"};
    return words[std::min(static_cast<unsigned>(state), 3U)];
}
const char* to_string(StashStatistics::Kind kind) noexcept {
    constexpr const char* words[] = {"stashes", "map", "frozen", "unknown"};
    return words[std::min(static_cast<unsigned>(kind), 3U)];
}

std::string to_json(const ContextStatistics& statistics) {
    return "{\"pool\":" + to_json(statistics.pool) + ",\"arena\":" + to_json(statistics.arena) +
           ",\"scratch\":" + to_json(statistics.scratch) + '}';
}

std::string to_text(const ContextStatistics& statistics) {
    const bool has_scratch = statistics.scratch.id != 0;
    return to_text(statistics.pool) + to_text(statistics.arena) +
           (has_scratch ? to_text(statistics.scratch) : std::string());
}

}  // namespace tensorpool
