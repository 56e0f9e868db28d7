#include "serve/watch/processes.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tensorpool::command::serve {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string seconds(std::uint64_t ns) {
    return fmt::format("{:.3f}", static_cast<double>(ns) / 1e9);
}

}  // namespace

std::string json_string(std::string_view text) {
    return text_of(json(text));
}

std::string to_json(const std::vector<ListedProcess>& processes) {
    json list = json::array();
    for (const ListedProcess& listed : processes) {
        list.push_back({{"process", listed.process},
                        {"name", listed.name},
                        {"readable", listed.readable},
                        {"problem", listed.problem},
                        {"ended", listed.ended}});
    }
    return text_of(list);
}

std::string to_json(const ProcessSnapshot& snapshot, const ProcessRates& rates) {
    return fmt::format(R"({{"time":{},"snapshot":{},"rates":{}}})", seconds(snapshot.time_unix_ns),
                       tensorpool::to_json(snapshot), tensorpool::to_json(rates));
}

std::string to_json(const TimelinePart& part) {
    std::string entries;
    for (const TimelineEntry& entry : part.entries) {
        if (!entries.empty()) entries += ',';
        entries += tensorpool::to_json(entry);
    }
    return fmt::format(R"({{"entries":[{}],"lost":{}}})", entries, part.lost);
}

std::string ended_json(std::uint64_t time_unix_ns) {
    return fmt::format(R"({{"time":{}}})", seconds(time_unix_ns));
}

std::string error_json(std::string_view message) {
    return fmt::format(R"({{"error":{}}})", json_string(message));
}

}  // namespace tensorpool::command::serve
