#include <nlohmann/json.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "formats/launch/launch.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command {
namespace {

using profile::Value;

struct ProfileOptions {
    std::vector<std::string> values;   // names of `Value`
    std::vector<std::string> formats;  // names of options
    profile::TextOptions text;
    std::string compare;
    std::string output;
    std::string interval;  // "": as it is
    std::vector<std::string> with;
};

CommandError unexpected(const std::string& found, const char* expected) {
    return {wrong_usage, fmt::format("profile: found {}; expected {}", found, expected)};
}

/// Checks what CLI11 cannot.
void check(const Settings& settings, const ProfileOptions& options) {
    std::vector<std::string> formats = options.formats;
    if (settings.json) formats.emplace_back("json");
    const auto both = [](const std::vector<std::string>& two) {
        return fmt::format("--{} and --{}", two[0], two[1]);
    };
    if (formats.size() > 1) throw unexpected(both(formats), "one format");
    if (options.values.size() > 1) throw unexpected(both(options.values), "one value");
    if (!formats.empty() && (options.text.stacks || options.text.lifetimes)) {
        throw unexpected(fmt::format("--stacks or --lifetimes with --{}", formats[0]),
                         "them without a format, because they change the table");
    }
    if (!options.compare.empty() && (formats.empty() || formats[0] != "html")) {
        throw unexpected("--compare without --html", "both, because only the page compares");
    }
    check_program("profile", settings, options.with);
    const bool changes_process = !options.interval.empty() && settings.program.empty();
    if (changes_process && !(formats.empty() && options.values.empty())) {
        throw unexpected("--interval with a format or a value",
                         "it alone, because it changes a process and shows no profile");
    }
    if (!formats.empty() && formats[0] == "pprof" && options.output.empty() &&
        isatty(STDOUT_FILENO) != 0) {
        throw unexpected("--pprof, which is binary, for a terminal", "a file, named with -o");
    }
}

/// At the end of a program, little is alive.
Value value_of(const Settings& settings, const ProfileOptions& options) {
    if (options.values.empty()) return settings.program.empty() ? Value::live : Value::peak;
    for (const Value value : {Value::live, Value::peak}) {
        if (name_of(value) == options.values[0]) return value;
    }
    return Value::allocated;
}

std::string text_of(const profile::NamedProfile& named, const Settings& settings,
                    const ProfileOptions& options, const nlohmann::ordered_json& before) {
    const std::string format = options.formats.empty() ? "" : options.formats[0];
    if (settings.json) return to_json(named).dump() + '\n';
    if (format == "pprof") return to_pprof(named);
    if (format == "pprof-legacy") return to_pprof_legacy(named);
    if (format == "collapsed") return to_collapsed(named);
    if (format == "speedscope") return to_speedscope(named);
    if (format == "html") return to_flame_graph(named, before).text;
    profile::TextOptions text = options.text;
    text.sizes = sizes_of(settings);
    return to_text(named, text);
}

/// Runs the program like `tensorpool run`, but without a report. Returns the last profile of the
/// process with the highest peak, and sets how the program ended.
HeapProfile run_program(const std::vector<std::string>& program, const ProfileOptions& options,
                        launch::Outcome& outcome) {
    const bool is_given = !options.interval.empty();
    setenv("TENSORPOOL_PROFILE", is_given ? options.interval.c_str() : "on", is_given ? 1 : 0);
    std::optional<HeapProfile> highest;
    std::uint64_t others = 0;
    const auto look = [&](StatisticsReader& process) {
        HeapProfile profile = process.heap_profile();
        if (highest) ++others;
        if (!highest || profile.peak_bytes > highest->peak_bytes) highest = std::move(profile);
    };
    const launch::Arguments arguments{.program = program, .with = options.with};
    outcome = launch::Launch(arguments).run({.last = look, .live = {}});
    if (!highest) {
        throw CommandError(finding, fmt::format("profile: no process of {} used a pool; "
                                                "`tensorpool run` reports why",
                                                printable(program.front())));
    }
    if (others != 0) {
        print_error(
            fmt::format("tensorpool: this is the process with the highest peak; {} others "
                        "used a pool",
                        others));
    }
    return std::move(*highest);
}

/// Returns the profile of a running process. If it has none, sampling begins.
HeapProfile read_profile(const Settings& settings) {
    StatisticsReader process = attach_chosen(settings);
    HeapProfile profile = process.heap_profile();
    if (profile.interval != 0 || !profile.sites.empty()) return profile;
    throw CommandError(finding,
                       fmt::format("profile: {}; run this command again to see what it allocates "
                                   "from now on",
                                   profile::turn_on(process)));
}

int profile_process(const Settings& settings, const ProfileOptions& options) {
    check(settings, options);
    if (!options.interval.empty() && settings.program.empty()) {
        StatisticsReader process = attach_chosen(settings);
        print_line(profile::change_interval(process, *profile::parse_interval(options.interval)));
        return success;
    }
    nlohmann::ordered_json before;
    if (!options.compare.empty()) before = profile::read_json(options.compare);
    launch::Outcome outcome;
    HeapProfile of_process = settings.program.empty()
                                 ? read_profile(settings)
                                 : run_program(settings.program, options, outcome);
    const profile::NamedProfile named =
        profile::name_frames(std::move(of_process), value_of(settings, options));
    write_file(options.output, options.compare, text_of(named, settings, options, before));
    return settings.program.empty() ? success : launch::end_like(outcome);
}

void declare_options(CLI::App& command, Settings& settings, ProfileOptions& options) {
    add_process_options(command, settings);
    command.add_flag("--live{live},--peak{peak},--allocated{allocated}", options.values,
                     "Sort by, or export, these bytes (live)");
    add_option(command, "--top N", options.text.max_rows, "Rows of the table (10)",
               CLI::Range(1, 10'000));
    command.add_flag("--stacks", options.text.stacks, "Print the call stack below each row");
    command.add_flag("--lifetimes", options.text.lifetimes,
                     "Print how long freed blocks lived instead of bytes");
    command.add_flag(
        "--pprof{pprof},--pprof-legacy{pprof-legacy},--collapsed{collapsed},"
        "--speedscope{speedscope},--html{html}",
        options.formats, "Export this format");
    add_option(command, "--compare FILE", options.compare,
               "With --html: an earlier profile, written by --json");
    add_option(command, "-o,--output OUT", options.output, "Write to this file (standard output)");
    add_option(command, "--interval SIZE", options.interval,
               "Sample at this mean distance from now on; off; or all",
               profile::problem_of_interval);
    add_parts_option(command, options.with);
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool profile --name train --stacks\n"
    "  tensorpool profile --html -o train.html -- python3 train.py";

constexpr const char* details =
    "Pools sample one allocation in about 512 KiB, so the values are estimates. They sample none "
    "until they are asked to: by this command, by `tensorpool run --with profile`, by "
    "TENSORPOOL_PROFILE=on in the environment of the process, or by set_profile_interval in its "
    "code. If a running process takes no samples, this command lets it begin, and shows what was "
    "allocated since when it is run again. The process is not stopped.\n"
    "\n"
    "--interval sets another distance: for the program that is started, or for a running process, "
    "which takes it at its next slow path of a pool, and of which no profile is shown then.\n"
    "\n"
    "live are the bytes of blocks in use, peak those in use when the use of the process had its "
    "peak, and allocated those of all allocations so far. The table has a row for each line of the "
    "program: the innermost one of each call stack that is not part of an allocator, a standard "
    "library or a package of Python. --stacks shows the call stacks themselves. "
    "[other stacks] had no room in the process's table of stacks.\n"
    "\n"
    "--pprof writes profile.proto, with all values. --pprof-legacy writes gperftools' text, "
    "--collapsed the stacks for flamegraph.pl, --speedscope the file of speedscope.app, and --html "
    "a flame graph that needs no network. With --compare, its colours show what has grown since "
    "another profile.\n"
    "\n"
    "With -- and a program, the program runs like with `tensorpool run`, and the profile is "
    "printed when it has ended. As most blocks are freed by then, it is that of the peak, unless "
    "--live or --allocated is given. If several of its processes used a pool, the one with the "
    "highest peak is shown. The exit status is that of the program.\n";

}  // namespace

void add_profile(CLI::App& app, Settings& settings) {
    add_subcommand(
        app, settings,
        {"profile", "Show which call stacks hold the memory of a process", footer, details},
        profile_process, declare_options);
}

}  // namespace tensorpool::command
