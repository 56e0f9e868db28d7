#pragma once

/// @file
/// Parses server-sent events as a browser does.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tensorpool::command::serve::testing {

struct Event {
    std::string name;
    nlohmann::json data;  ///< discarded if it is not JSON
};

/// Parses complete events; comments are skipped.
inline std::vector<Event> events_in(const std::string& text) {
    std::vector<Event> events;
    Event event;
    bool any = false;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        at = end + 1;
        if (line.starts_with("event: ")) event.name = line.substr(7);
        if (line.starts_with("data: ")) {
            event.data = nlohmann::json::parse(line.substr(6), nullptr, false);
            any = true;
        }
        if (!line.empty() || !any) continue;
        events.push_back(event);
        event = Event();
        any = false;
    }
    return events;
}

inline std::vector<std::string> names_in(const std::string& text) {
    std::vector<std::string> names;
    for (const Event& event : events_in(text)) names.push_back(event.name);
    return names;
}

}  // namespace tensorpool::command::serve::testing
