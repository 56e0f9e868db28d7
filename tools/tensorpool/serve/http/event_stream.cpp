#include "serve/http/event_stream.hpp"

#include <string_view>

#include "serve/json.hpp"

namespace tensorpool::command::serve {
namespace {

/// Replaces the line breaks that JSON may contain between tokens, because a line break would end
/// the event's data.
void add_event(std::string& events, std::string_view name, std::string_view data) {
    events.append("event: ").append(name).append("\ndata: ");
    for (const char letter : data) events += letter == '\n' || letter == '\r' ? ' ' : letter;
    events += "\n\n";
}

}  // namespace

std::string EventStream::next() {
    std::string events;
    if (const std::optional<View> view = watcher_->view(process_)) add_view(*view, events);
    add_processes(events);
    return events;
}

void EventStream::add_view(const View& view, std::string& events) {
    if (ended_ && !view.ended) *this = EventStream(*watcher_, process_);
    if (!moment_) {
        add_event(events, "history",
                  watcher_->history_json(process_, view.moment->snapshot().time_ns));
    }
    if (moment_ != view.moment) {
        moment_ = view.moment;
        add_event(events, "snapshot", moment_->json());
    }
    add_timeline(events);
    if (view.ended && !ended_) add_event(events, "ended", ended_json(view.ended_unix_ns));
    ended_ = view.ended;
}

void EventStream::add_timeline(std::string& events) {
    const TimelinePart part = watcher_->entries_since(process_, entry_);
    entry_ = part.last;
    if (!part.entries.empty() || part.lost != 0) add_event(events, "timeline", to_json(part));
}

void EventStream::add_processes(std::string& events) {
    const std::uint64_t version = watcher_->list_version();
    if (version == list_version_) return;
    list_version_ = version;
    add_event(events, "processes", to_json(watcher_->processes()));
}

}  // namespace tensorpool::command::serve
