#include <nlohmann/json.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "formats/launch/launch.hpp"
#include "formats/profile/formats.hpp"
#include "leaks/observation.hpp"

namespace tensorpool::command {
namespace {

using leaks::Observation;
using leaks::Pace;

struct LeaksOptions {
    Pace pace;
    std::vector<std::string> with;
};

constexpr const char* how_to_mark =
    "mark the end of each with tensorpool::mark_timeline(\"step\") in C++ or `with "
    "tensorpool.iteration(\"step\"):` in Python, or give --every SECONDS";

/// Reports what makes the profile useless or incomplete.
void check(const HeapProfile& profile) {
    const std::vector<std::string> notes = profile::notes_of(profile);
    if (profile.interval == 0) throw CommandError(finding, "leaks: " + notes.front());
    for (const std::string& note : notes) print_error("tensorpool: leaks: " + note);
}

/// Observes until there are enough iterations, the process ends, or a signal arrives.
Observation observe(StatisticsReader& process, const Pace& pace) {
    using namespace std::chrono_literals;
    constexpr auto patience = 10s;
    const auto start = std::chrono::steady_clock::now();
    EndSignals signals;
    leaks::Watch watch(pace);
    try {
        do {
            watch.look(process);
            const bool waits_in_vain = pace.is_by_marks() && pace.mark.empty() &&
                                       !watch.has_marks() &&
                                       std::chrono::steady_clock::now() - start > patience;
            if (waits_in_vain) break;
        } while (!watch.is_complete() && !signals.come_within(leaks::between_looks) &&
                 process.is_running());
    } catch (const AttachError& error) {
        if (error.failure() != AttachFailure::ended) throw;
    }
    return watch.observation();
}

/// Runs the program like `tensorpool run`, but without a report, and sets how it ended. Returns the
/// observation of the process with the most iterations; an empty one if none was observed.
Observation observe_program(const std::vector<std::string>& program, const LeaksOptions& options,
                            launch::Outcome& outcome) {
    Observation longest;
    std::map<const StatisticsReader*, leaks::Watch> watches;
    launch::Family::Looks looks;
    looks.live = [&](StatisticsReader& process) {
        leaks::Watch& watch = watches.try_emplace(&process, options.pace).first->second;
        if (!watch.is_complete()) watch.look(process);
    };
    looks.longest_pause_ms = static_cast<int>(leaks::between_looks.count());
    looks.last = [&](StatisticsReader& process) {
        const auto watch = watches.find(&process);
        if (watch == watches.end()) return;
        const Observation& observation = watch->second.observation();
        if (observation.profiles() > longest.profiles()) longest = observation;
        watches.erase(watch);
    };
    const launch::Arguments arguments{.program = program, .with = options.with};
    outcome = launch::Launch(arguments).run(looks);
    return longest;
}

int report(const Observation& observation, const Settings& settings, const Pace& pace) {
    if (observation.profiles() < 2) {
        throw CommandError(
            finding, fmt::format("leaks: found fewer than 3 ends of iterations: {}", how_to_mark));
    }
    const leaks::Report report = judge(observation, pace);
    print_line(settings.json ? to_json(report) : to_text(report, sizes_of(settings)));
    return report.leaks() == 0 ? success : finding;
}

int find_leaks(const Settings& settings, const LeaksOptions& options) {
    check_program("leaks", settings, options.with);
    if (settings.program.empty()) {
        StatisticsReader process = attach_chosen(settings);
        if (process.heap_profile().interval == 0) {
            print_error("tensorpool: leaks: " + profile::turn_on(process));
        }
        check(process.heap_profile());
        return report(observe(process, options.pace), settings, options.pace);
    }
    setenv("TENSORPOOL_PROFILE", "on", 0);
    launch::Outcome outcome;
    const Observation observation = observe_program(settings.program, options, outcome);
    if (observation.profiles() != 0) check(observation.last());
    const int status = report(observation, settings, options.pace);
    return outcome.code == 0 && outcome.signal == 0 ? status : launch::end_like(outcome);
}

void declare_options(CLI::App& command, Settings& settings, LeaksOptions& options) {
    add_process_options(command, settings);
    CLI::Option* const every =
        add_option(command, "--every SECONDS", options.pace.seconds,
                   "End an iteration after this time", CLI::Range(0.01, 86400.0));
    add_option(command, "--mark TEXT", options.pace.mark,
               "End an iteration at marks with this text (at each mark)")
        ->excludes(every);
    add_option(command, "--iterations N", options.pace.iterations, "Iterations to observe (20)",
               CLI::Range(1, 10'000));
    add_parts_option(command, options.with);
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool leaks --name train\n"
    "  tensorpool leaks --every 5 --iterations 60 --pid 4711\n"
    "  tensorpool leaks --mark step -- python3 train.py";

constexpr const char* details =
    "An iteration ends when the program calls tensorpool::mark_timeline, or when a block `with "
    "tensorpool.iteration(\"step\"):` of Python ends. At the end of each, a heap profile is "
    "taken. The process is not stopped. If it takes no samples, it begins now. If it makes no "
    "mark within 10 seconds, give --mark, which waits longer, or --every.\n"
    "\n"
    "Each call stack whose memory grows has a verdict. It is judged by its survivors: the bytes "
    "that an iteration left and no later one freed.\n"
    "\n"
    "  leak                They grow in proportion to the iterations.\n"
    "  cache that fills    They grow less and less.\n"
    "  warm-up             They grew at the beginning, but hardly since.\n"
    "  too little to tell  They grow by less than 16 times the mean distance\n"
    "                      between samples, by few steps, or in under 11 profiles.\n"
    "\n"
    "The table shows the growth per iteration, and the standard deviation that sampling adds to "
    "it; the growth over all iterations; the bytes that are live now; the age of the oldest "
    "survivors in iterations; and the age that half of them exceed.\n"
    "\n"
    "The stack says where the memory was allocated. What keeps it may be elsewhere: a list, a "
    "dictionary, or a sum of losses, whose graph refers to all tensors that it was computed from.\n"
    "\n"
    "Memory that is freed less often than once in the observed iterations looks like a leak, and "
    "so does a cache that they fill only in part. Observe more iterations than an epoch has.\n"
    "\n"
    "With -- and a program, the program runs like with `tensorpool run`. Its first iterations are "
    "observed, and the report is printed when it has ended. If several of its processes make "
    "marks, the one with the most iterations is shown.\n"
    "\n"
    "The exit status is 1 if there is a leak. If the program fails, it is that of the program.\n";

}  // namespace

void add_leaks(CLI::App& app, Settings& settings) {
    add_subcommand(
        app, settings,
        {"leaks", "Find call stacks whose memory grows with each iteration", footer, details},
        find_leaks, declare_options);
}

}  // namespace tensorpool::command

namespace tensorpool::command::leaks {
namespace {

Row row_of(const Observation& observation, std::uint64_t id, const Judgement& judged) {
    const auto iterations =
        static_cast<double>(std::max<std::uint64_t>(observation.iterations(), 1));
    Row row;
    row.site.id = id;
    row.judged = judged;
    row.slope = judged.growth / iterations;
    row.slope_uncertainty = judged.uncertainty / iterations;
    row.oldest = observation.iterations_since(judged.oldest);
    row.median_age = observation.iterations_since(judged.median);
    return row;
}

/// Removes the sites and frames that no row needs: reading the symbols of a library takes seconds.
void keep_only(HeapProfile& profile, const std::vector<Row>& rows) {
    std::erase_if(profile.sites, [&](const ProfileSite& site) {
        return std::ranges::none_of(rows, [&](const Row& row) { return row.site.id == site.id; });
    });
    profile::drop_unused_frames(profile);
}

void sort_rows(std::vector<Row>& rows) {
    std::ranges::sort(rows, std::ranges::less(), [](const Row& row) {
        return std::tuple(row.judged.verdict, -row.judged.growth, row.site.id);
    });
}

/// Rounds to whole bytes. The process may have written any value.
std::uint64_t whole(double bytes) {
    return static_cast<std::uint64_t>(std::clamp(std::round(bytes), 0.0, 0x1p62));
}

std::string headline(const Report& report, Sizes sizes) {
    const HeapProfile& profile = report.named.profile;
    std::string text =
        fmt::format("process {} ({}): {}", profile.process, printable(profile.process_name),
                    counted(report.iterations, "iteration"));
    if (!report.pace.is_by_marks()) {
        text += fmt::format(" of {:g} s", report.pace.seconds);
    } else if (!report.pace.mark.empty()) {
        text += fmt::format(" by marks {}", printable(report.pace.mark));
    } else {
        text += " by marks";
    }
    text += fmt::format(" in {:.3g} s", report.seconds);
    if (report.profiles != report.iterations + 1) {
        text += fmt::format(", {} profiles", report.profiles);
    }
    return text +
           fmt::format(", one sample per {}\n",
                       format_size(std::max(profile.interval, profile.mean_distance), sizes));
}

std::string summary(const Report& report) {
    if (report.rows.empty()) {
        return fmt::format("none of {} grows", counted(report.steady, "site"));
    }
    return fmt::format("{} of {} grow; {}", report.rows.size(),
                       counted(report.rows.size() + report.steady, "site"),
                       counted(report.leaks(), "leak"));
}

std::vector<Cell> cells_of(const Report& report, const Row& row, Sizes sizes) {
    return {{std::string(to_string(row.judged.verdict))},
            size_cell(whole(row.slope), sizes),
            {"+/- " + format_size(whole(row.slope_uncertainty), sizes)},
            size_cell(whole(row.judged.growth), sizes),
            size_cell(row.site.live_bytes, sizes),
            number_cell(row.oldest),
            number_cell(row.median_age),
            profile::line_cell(report.named, row.site)};
}

using Json = nlohmann::ordered_json;

Json json_of(const Report& report, const Row& row) {
    Json json = {{"verdict", to_string(row.judged.verdict)},
                 {"bytes_per_iteration", row.slope},
                 {"bytes_per_iteration_uncertainty", row.slope_uncertainty},
                 {"growth_bytes", row.judged.growth},
                 {"growth_uncertainty_bytes", row.judged.uncertainty},
                 {"live_bytes", row.site.live_bytes},
                 {"oldest_iterations", row.oldest},
                 {"median_age_iterations", row.median_age},
                 {"live_bytes_by_profile", row.live},
                 {"line", profile::line_of(report.named, row.site)}};
    json["stack"] = profile::stack_of(report.named, row.site);
    return json;
}

}  // namespace

std::uint64_t Report::leaks() const noexcept {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        rows, [](const Row& row) { return row.judged.verdict == Verdict::leak; }));
}

Report judge(const Observation& observation, const Pace& pace) {
    Report report{.pace = pace,
                  .iterations = observation.iterations(),
                  .profiles = observation.profiles(),
                  .seconds = observation.seconds(),
                  .rows = {},
                  .named = {}};
    HeapProfile last = observation.last();
    for (const auto& [id, history] : observation.sites()) {
        const Judgement judged = judge(history, static_cast<double>(last.interval));
        if (judged.verdict == Verdict::steady) {
            ++report.steady;
        } else {
            report.rows.push_back(row_of(observation, id, judged));
            report.rows.back().live = history.live;
        }
    }
    sort_rows(report.rows);
    keep_only(last, report.rows);
    report.named = profile::name_frames(std::move(last), profile::Value::live);
    for (const ProfileSite& site : report.named.profile.sites) {
        std::ranges::find(report.rows, site.id, [](const Row& row) { return row.site.id; })->site =
            site;
    }
    return report;
}

std::string to_text(const Report& report, Sizes sizes) {
    std::string text = headline(report, sizes) + summary(report);
    if (report.rows.empty()) return text;
    Table table;
    table.columns = {{"verdict", Side::left},
                     {"per iteration"},
                     {"", Side::left},
                     {"growth"},
                     {"live"},
                     {"oldest"},
                     {"median age"},
                     {"allocated at", Side::left}};
    for (const Row& row : report.rows) table.rows.push_back(cells_of(report, row, sizes));
    const std::vector<std::string> lines = lay_out(table, any_width);
    text += '\n';
    for (std::size_t i = 0; i < lines.size(); ++i) {
        text += lines[i] + '\n';
        if (i == 0 || report.rows[i - 1].judged.verdict != Verdict::leak) continue;
        text += profile::stack_text(report.named, report.rows[i - 1].site);
    }
    text.pop_back();
    return text;
}

std::string to_json(const Report& report) {
    const HeapProfile& profile = report.named.profile;
    Json json = {{"process", profile.process},      {"process_name", profile.process_name},
                 {"iterations", report.iterations}, {"profiles", report.profiles},
                 {"seconds", report.seconds},       {"interval", profile.interval},
                 {"leaks", report.leaks()},         {"steady_sites", report.steady}};
    json["sites"] = Json::array();
    for (const Row& row : report.rows) json["sites"].push_back(json_of(report, row));
    return json_line(json);
}

}  // namespace tensorpool::command::leaks
