#include <unistd.h>

#include <fstream>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "stat/stat_line.hpp"

namespace tensorpool::command {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns the seconds since a process started, or 0 if the system does not report them.
double process_age(std::uint64_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    // The second field is the name in parentheses, which may contain any character; the 22nd is the
    // start.
    const std::size_t end_of_name = text.rfind(')');
    double seconds_up = 0;
    std::ifstream("/proc/uptime") >> seconds_up;
    if (end_of_name == std::string::npos) return 0;
    std::istringstream fields(text.substr(end_of_name + 1));
    std::string skipped;
    for (int field = 3; field < 22; ++field) fields >> skipped;
    double ticks = 0;
    const double ticks_a_second = static_cast<double>(sysconf(_SC_CLK_TCK));
    if (!(fields >> ticks) || ticks_a_second <= 0) return 0;
    const double age = seconds_up - ticks / ticks_a_second;
    return age > 0 ? age : 0;
}

struct StatOptions {
    Repetition repetition;
    std::string pool;
    bool devices = false;
    bool planned = false;
    bool budgets = false;
    std::string kind;

    bool has_tables() const noexcept { return devices || !names().empty(); }
    RecordNames names() const {
        if (devices) return {"devices", "device_streams"};
        if (planned) return {"planned"};
        if (budgets) return {"budgets", "stashes"};
        return kind.empty() ? RecordNames() : RecordNames{kind};
    }
    std::string nothing() const {
        if (planned) return "no planned arena now";
        return budgets ? "no budget and nothing at rest now" : "no record of " + kind + " now";
    }
};

/// The titles are repeated after this many lines.
constexpr std::uint64_t lines_per_title = 20;

class Statistics {
public:
    Statistics(const Settings& settings, const StatOptions& options)
        : settings_(settings), options_(options) {}

    /// Prints lines until all are printed, or until AttachError reports the end of the process.
    void follow(StatisticsReader& reader) {
        if (options_.has_tables()) return follow_tables(reader);
        Clock::time_point next = Clock::now();
        ProcessSnapshot older = take(reader);
        print(since_start(older, process_age(reader.process())));
        while (!is_done()) {
            next += options_.repetition.step();
            pause_until(next, reader);
            ProcessSnapshot newer = take(reader);
            print(compare(older, newer));
            older = std::move(newer);
        }
    }
    bool is_done() const noexcept {
        return options_.repetition.times != 0 && lines_ >= options_.repetition.times;
    }

private:
    void follow_tables(StatisticsReader& reader) {
        Clock::time_point next = Clock::now();
        for (;;) {
            print(reader.snapshot());
            if (is_done()) return;
            next += options_.repetition.step();
            pause_until(next, reader);
        }
    }
    ProcessSnapshot take(StatisticsReader& reader) const {
        ProcessSnapshot snapshot = reader.snapshot();
        if (options_.pool.empty()) return snapshot;
        keep_pool(snapshot, options_.pool);
        if (!snapshot.pools.empty()) return snapshot;
        throw CommandError(
            finding, fmt::format("process {} has no pool named {}; `tensorpool top --pid {}` lists "
                                 "its pools",
                                 snapshot.process, options_.pool, snapshot.process));
    }
    void print(const ProcessSnapshot& snapshot) {
        const Sizes sizes = sizes_of(settings_);
        const bool first = lines_ == 0;
        if (settings_.json) {
            print_line(stat_records_json(snapshot, options_.names()));
        } else if (options_.devices) {
            print_line(stat_devices(snapshot, sizes, first));
        } else {
            const std::string text = stat_records(snapshot, options_.names(), sizes, first);
            print_line(text.empty() ? options_.nothing() : text);
        }
        ++lines_;
    }
    void print(const StatSample& sample) {
        const Sizes sizes = sizes_of(settings_);
        if (settings_.json) {
            print_line(stat_json(sample));
        } else {
            if (lines_ % lines_per_title == 0) print_line(stat_titles(sizes));
            print_line(stat_line(sample, sizes));
        }
        ++lines_;
    }

    const Settings& settings_;
    const StatOptions& options_;
    std::uint64_t lines_ = 0;
};

int print_statistics(const Settings& settings, const StatOptions& options) {
    Statistics statistics(settings, options);
    while (!statistics.is_done()) {
        StatisticsReader reader = attach_chosen(settings);
        try {
            statistics.follow(reader);
        } catch (const AttachError& error) {
            const CommandError failure = to_command_error(error);
            if (!settings.wait || failure.code() != target_gone) throw failure;
            print_error(fmt::format("tensorpool: {}; waiting for the next", failure.what()));
        }
    }
    return success;
}

/// Returns the titles of a table's columns with what they mean.
std::string columns_text(const std::string& list) {
    std::string text;
    const std::vector<RecordGroup> groups = record_groups({});
    for (const RecordGroup& group : groups) {
        if (group.name != list) continue;
        for (const RecordColumn& column : to_grid(groups, group).columns) {
            if (column.about.empty() || column.title.empty()) continue;
            text += fmt::format("{}{}: {}", text.empty() ? "" : " ", column.title, column.about);
        }
    }
    return text;
}

void declare_options(CLI::App& command, Settings& settings, StatOptions& options) {
    add_target_options(command, settings);
    add_option(command, "--pool POOL", options.pool, "Only the pool of this name");
    command
        .add_flag("--devices", options.devices, "Instead, device allocators with PyTorch's names")
        ->excludes("--pool");
    command.add_flag("--planned", options.planned, "Instead, planned arenas with their peaks")
        ->excludes("--pool", "--devices");
    command.add_flag("--budgets", options.budgets, "Instead, the tree of budgets and what rests")
        ->excludes("--pool", "--devices", "--planned");
    add_option(command, "--kind KIND", options.kind, "Instead, all records of this kind")
        ->excludes("--pool", "--devices", "--planned", "--budgets");
    add_repetition_options(command, options.repetition);
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool stat --name train -i 5 -n 12   a minute, in steps of 5 s\n"
    "The first line is an average since its start. Status 3: the process ended.";

std::string details() {
    return "The columns are: memory in use by callers (in use), committed memory (capacity), the "
           "peak of the memory in use, the fraction of the capacity in use (util), the fraction of "
           "the allocations served from a thread's own cache (hits), allocations, deallocations "
           "and minor page faults per second, and the number of failed requests so far (failures). "
           "Sizes are sums over pools, arenas and scratches; rates are those of pools.\n\n"
           "With --devices, there is a table for each allocator of device memory or of pinned "
           "memory. Its second column is the name of the metric in torch.cuda.memory_stats().\n\n"
           "With --planned, there is a row for each PlannedArena. " +
           columns_text("planned") +
           "\n\nWith --budgets, there is a row for each Budget, indented below its parent. " +
           columns_text("budgets") +
           "\n\nBelow it is a row for each name of stashes or frozen blocks, and for each "
           "StashedMap. " +
           columns_text("stashes") +
           "\n\nWith --kind, there is a row for each record of a kind, named as in JSON: arenas, "
           "scopes, or one that only the process knows.\n";
}

}  // namespace

void add_stat(CLI::App& app, Settings& settings) {
    add_subcommand(
        app, settings,
        {"stat", "Print a line of statistics per second, like vmstat", footer, details()},
        print_statistics, declare_options);
}

}  // namespace tensorpool::command
