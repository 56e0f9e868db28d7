#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

#include <tensorpool/timeline.hpp>

#include "common/output.hpp"
#include "common/pause.hpp"
#include "common/printable.hpp"
#include "common/target.hpp"
#include "options.hpp"
#include "subcommands.hpp"

namespace tensorpool::command {
namespace {

using namespace std::chrono_literals;

/// Often enough for a person, and for a ring of 1,024 entries.
constexpr auto between_looks = 200ms;

struct EventOptions {
    bool follow = false;
    std::uint64_t last = 0;  ///< how many of the past; 0: all
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
            part.lost = 0;  // nobody asked for them
        }
        print(part);
    }
    /// Until the process ends.
    void follow(StatisticsReader& reader) {
        while (reader.is_running()) {
            pause_until(std::chrono::steady_clock::now() + between_looks, reader);
            print_new(reader);
        }
        print_new(reader);  // what it wrote between the last look and its end
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

/// Returns when the process has ended.
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
    fmt::print(stderr, "tensorpool: process {} has ended; waiting for the next\n", process);
}

int print_events(const Settings& settings, const EventOptions& options) try {
    do follow_one(settings, options);
    while (options.follow);
    return success;
} catch (const AttachError& error) {
    throw to_command_error(error);
}

}  // namespace

CLI::App* add_events(CLI::App& app, Settings& settings) {
    CLI::App* const command =
        app.add_subcommand("events", "Print what happened lately: growth, limits, failures");
    const auto options = std::make_shared<EventOptions>();
    add_target_options(*command, settings);
    command->add_flag("-f,--follow", options->follow, "Go on until the process ends");
    command->add_option("-n,--last", options->last, "Only the last of the past")
        ->option_text("N")
        ->check(CLI::PositiveNumber);
    command->add_flag("--json", settings.json, "Print JSON, one object a line");
    command->footer(
        "Examples:\n"
        "  tensorpool events --name train             what the process still knows\n"
        "  tensorpool events --name train --follow    and what happens from now on\n"
        "  tensorpool events --name train --json | jq 'select(.kind == \"failure\")'\n"
        "\n"
        "A process keeps its last 1,024 entries. With --follow it ends with status 3 when\n"
        "the process does.");
    settings.details["events"] =
        "Kinds: growth (memory came from the system), give-back (it went back), pressure (a "
        "request was met only after all that was free had been gathered), limit (a request met a "
        "limit), failure (a request could not be met), check (a check fired), scope (the peak of "
        "a StatisticsScope rose), mark (the program's own, see mark_timeline). Of device "
        "allocators also the steps before a request was met or was not: completed (freed blocks "
        "became free), coalesced, aged (free memory that had long been of no use went back), "
        "callbacks (were asked to free something), uncached (all unused memory went back), waited "
        "(for the device); and if they are told to keep it: allocated, recycled, freed, "
        "profile. Of planned arenas: plan (one was made or loaded; its peak) and drift (the "
        "requests "
        "left the plan for good).\n";
    command->callback([&settings, options] {
        settings.run = [&settings, options] { return print_events(settings, *options); };
    });
    return command;
}

}  // namespace tensorpool::command
