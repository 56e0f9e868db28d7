#include <nlohmann/json.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"

namespace tensorpool::command {
namespace {

using namespace std::chrono_literals;

/// Frequent enough for people, and to keep a ring of 1,024 entries from overflowing.
constexpr auto between_looks = 200ms;

struct EventOptions {
    bool follow = false;
    std::uint64_t last = 0;  ///< how many past entries; 0: all
};

class Events {
public:
    Events(const Settings& settings, const EventOptions& options)
        : settings_(settings), options_(options) {}

    void print_past(StatisticsReader& reader) {
        TimelinePart part = reader.entries_since(0);
        number_ = part.last;
        if (options_.last != 0 && part.entries.size() > options_.last) {
            part.entries.erase(part.entries.begin(),
                               part.entries.end() - static_cast<std::ptrdiff_t>(options_.last));
            part.lost = 0;  // not requested, so not lost
        }
        print(part);
    }
    /// Prints new entries until the process ends.
    void follow(StatisticsReader& reader) {
        while (reader.is_running()) {
            pause_until(std::chrono::steady_clock::now() + between_looks, reader);
            print_new(reader);
        }
        print_new(reader);  // entries written after the last read and before the end
    }

private:
    void print_new(StatisticsReader& reader) {
        const TimelinePart part = reader.entries_since(number_);
        number_ = part.last;
        print(part);
    }
    void print(const TimelinePart& part) const {
        if (part.lost > 0) print_lost(part.lost);
        for (const TimelineEntry& entry : part.entries) {
            print_line(settings_.json ? to_json(entry) : printable(to_text(entry)));
        }
    }
    void print_lost(std::uint64_t lost) const {
        if (settings_.json) return print_line(nlohmann::json{{"lost", lost}}.dump());
        print_line(fmt::format("({} entries before these were overwritten)", lost));
    }

    const Settings& settings_;
    const EventOptions& options_;
    std::uint64_t number_ = 0;
};

/// Follows one process until it has ended.
void follow_one(const Settings& settings, const EventOptions& options) {
    StatisticsReader reader = attach_chosen(settings);
    const std::uint64_t process = reader.process();
    Events events(settings, options);
    events.print_past(reader);
    if (!options.follow) return;
    events.follow(reader);
    if (!settings.wait) {
        throw CommandError(target_gone, fmt::format("process {} has ended", process));
    }
    print_error(fmt::format("tensorpool: process {} has ended; waiting for the next", process));
}

int print_events(const Settings& settings, const EventOptions& options) {
    do follow_one(settings, options);
    while (options.follow);
    return success;
}

void declare_options(CLI::App& command, Settings& settings, EventOptions& options) {
    add_target_options(command, settings);
    command.add_flag("-f,--follow", options.follow, "Continue until the process ends");
    add_option(command, "-n,--last N", options.last, "Print only the last N past events",
               CLI::PositiveNumber);
    command.add_flag("--json", settings.json, "Print JSON, one object per line");
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool events --name train             past events of the process\n"
    "  tensorpool events --name train --follow    and new events\n"
    "  tensorpool events --name train --json | jq 'select(.kind == \"failure\")'\n"
    "\n"
    "A process keeps its last 1,024 entries. With --follow, the status is 3 when the\n"
    "process ends.";

constexpr const char* details =
    "Kinds: growth (memory was taken from the system), give-back (memory was returned to the "
    "system), pressure (a request succeeded only after all free memory had been collected), "
    "limit (a request reached a limit), failure (a request failed), check (a check found an "
    "error), scope (the peak of a StatisticsScope rose), mark (set by the program with "
    "mark_timeline). Allocators of device memory also record the steps taken before a request "
    "succeeded or failed: completed (freed blocks became free), coalesced, aged (memory free "
    "for a long time was released), callbacks (callbacks were called to free memory), uncached "
    "(all unused memory was released), waited (for the device). If enabled, they also record "
    "allocated, recycled, freed and profile. Planned arenas record plan (a plan was made or "
    "loaded, with its peak) and drift (the requests left the plan for good).\n";

}  // namespace

void add_events(CLI::App& app, Settings& settings) {
    add_subcommand(app, settings,
                   {"events", "Print recent events: growth, limits, failures", footer, details},
                   print_events, declare_options);
}

}  // namespace tensorpool::command
