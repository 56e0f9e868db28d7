#include <string>

#include <tensorpool/process_snapshot.hpp>

#include "statistics/metrics/process_metrics.hpp"
#include "statistics/report/report_parts.hpp"

namespace tensorpool {
namespace {

using statistics::array_of;
using statistics::members;
using statistics::quoted;

std::string member(const char* name, std::uint64_t value) {
    return quoted(name) + ':' + std::to_string(value);
}

std::string member(const char* name, const std::string& json) {
    return quoted(name) + ':' + json;
}

std::string json_of(const LeftOut& left_out) {
    return '{' + member("pools", left_out.pools) + ',' + member("arenas", left_out.arenas) + ',' +
           member("devices", left_out.devices) + ',' +
           member("device_streams", left_out.device_streams) + ',' +
           member("planned", left_out.planned) + ',' + member("slots", left_out.slots) + ',' +
           member("budgets", left_out.budgets) + ',' + member("stashes", left_out.stashes) + ',' +
           member("scopes", left_out.scopes) + '}';
}

std::string json_of(const std::vector<ThreadStatistics>& threads) {
    std::string out = "[";
    for (const ThreadStatistics& thread : threads) {
        if (out.size() > 1) out += ',';
        out += '{' + member("name", quoted(thread.name.c_str())) + ',' + members(thread) + '}';
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

}  // namespace

std::string to_json(const ProcessSnapshot& snapshot) {
    std::string out = '{' + head_of(snapshot);
    const auto add = [&](const char* name, const std::string& json) {
        out += ',' + member(name, json);
    };
    out += ',' + members(snapshot);
    add("left_out", json_of(snapshot.left_out));
    add("pools", array_of(snapshot.pools));
    add("arenas", array_of(snapshot.arenas));
    add("scratches", array_of(snapshot.scratches));
    add("devices", array_of(snapshot.devices));
    add("device_streams", array_of(snapshot.device_streams));
    add("planned", array_of(snapshot.planned));
    add("budgets", array_of(snapshot.budgets));
    add("stashes", array_of(snapshot.stashes));
    add("scopes", array_of(snapshot.scopes));
    add("threads", json_of(snapshot.threads));
    add("entries", std::to_string(snapshot.entries));
    return out + '}';
}

}  // namespace tensorpool
