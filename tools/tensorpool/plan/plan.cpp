#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "common/options.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command {
namespace planning {
namespace {

struct Options {
    std::string file;
    std::string budget = "10s";
    std::uint64_t capacity = 0;
    std::string output;
    std::string picture;
    bool check = false;
    Choice choice;
};

std::optional<std::chrono::nanoseconds> parse_budget(const std::string& text) {
    return text == "0" ? std::chrono::nanoseconds(0) : parse_time(text);
}
std::string problem_of_budget(const std::string& text) {
    return parse_budget(text) ? "" : problem_of_time(text);
}

/// Runs `part` and reports invalid lifetimes and plans as errors of the file.
template <class Part>
auto with_file_name(const std::string& file, Part&& part) {
    try {
        return part();
    } catch (const std::invalid_argument& error) {
        // The prefix of the library is replaced by the file's name.
        constexpr std::string_view library = "tensorpool: plan: ";
        std::string_view what = error.what();
        if (what.starts_with(library)) what.remove_prefix(library.size());
        throw CommandError(finding, fmt::format("{}: {}", printable(file), printable(what)));
    }
}

/// Checks the offsets in the file. Throws CommandError if the plan is invalid.
Outcome check(const Options& options, const Buffers& buffers) {
    if (buffers.offsets.empty() && !buffers.lifetimes.empty()) {
        throw CommandError(finding, fmt::format("{}: has no offsets, so there is no plan to check; "
                                                "expected a column or a member `offset`",
                                                printable(options.file)));
    }
    Outcome outcome;
    outcome.checked = true;
    MemoryPlan& plan = outcome.plan;
    plan.offsets = buffers.offsets;
    plan.peak_bytes = buffers.peak_bytes.value_or(peak_of(buffers.lifetimes, buffers.offsets));
    plan.lower_bound_bytes = lower_bound_of(buffers.lifetimes);
    with_file_name(options.file, [&] { validate(buffers.lifetimes, plan); });
    return outcome;
}

Outcome make(const Options& options, const Buffers& buffers) {
    Outcome outcome;
    const auto begin = std::chrono::steady_clock::now();
    outcome.plan = with_file_name(options.file, [&] {
        return plan_memory(buffers.lifetimes, {.budget = *parse_budget(options.budget),
                                               .enough_bytes = options.capacity});
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    outcome.seconds = took.count();
    validate(buffers.lifetimes, outcome.plan);
    return outcome;
}

void write_plan(const Options& options, const Buffers& buffers, const MemoryPlan& plan) {
    WrittenFile file(options.output, options.file);
    options.output.ends_with(".json") ? write_json(buffers, plan, file)
                                      : write_csv(buffers, plan, file);
    file.finish();
}

int plan_file(const Settings& settings, const Options& options) {
    const Buffers buffers =
        with_file_name(options.file, [&] { return read_file(options.file, options.choice); });
    Outcome outcome = options.check ? check(options, buffers) : make(options, buffers);
    outcome.file = options.file;
    outcome.origin = buffers.origin;
    outcome.buffers = buffers.lifetimes.size();
    outcome.capacity_bytes = options.capacity;
    if (!options.output.empty()) write_plan(options, buffers, outcome.plan);
    if (!options.picture.empty()) {
        write_file(options.picture, options.file, picture_of(buffers, outcome));
    }
    print_line(settings.json ? report_json(outcome) : report_text(outcome, sizes_of(settings)));
    return fits(outcome) ? success : finding;
}

void add_choice(CLI::App& command, Choice& choice) {
    static const std::map<std::string, Kind> kinds = {{"host", Kind::host},
                                                      {"pools", Kind::pools},
                                                      {"arenas", Kind::arenas},
                                                      {"devices", Kind::devices},
                                                      {"all", Kind::all}};
    add_option(command, "--kind KIND", choice.kind,
               "In a trace: pools, arenas, devices, all, or all but devices (host)")
        ->transform(CLI::CheckedTransformer(kinds));
    add_option(command, "--source NAME", choice.sources, "In a trace: a pool's name; repeatable");
    add_option(command, "--process PID", choice.process, "In a trace: the process (the largest)",
               CLI::PositiveNumber);
    add_option(command, "--from CALL", choice.from, "In a trace: the first call (0)");
    add_option(command, "--to CALL", choice.to, "In a trace: stop before this call (end)");
}

void add_options(CLI::App& command, Settings& settings, Options& options) {
    add_file(command, options.file, "Buffers as CSV or JSON, a trace, or an RMM log");
    add_option(command, "--budget TIME", options.budget, "Time for the search (10s)",
               problem_of_budget);
    add_option(command, "--capacity SIZE", options.capacity, "Target size; status 1 if exceeded")
        ->transform(as_size());
    CLI::Option* const output =
        add_option(command, "-o,--output FILE", options.output, "Write the plan, as CSV or .json");
    add_option(command, "--svg FILE", options.picture, "Draw the plan as SVG");
    command.add_flag("--check", options.check, "Check the offsets in the file; do not plan")
        ->excludes(output);
    add_choice(command, options.choice);
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool plan buffers.csv -o plan.csv --svg plan.svg\n"
    "  tensorpool plan plan.csv --check";

constexpr const char* details =
    "Computes an offset for each buffer in one block of memory, from lifetimes that are known in "
    "advance. The LOWER BOUND is the maximum number of bytes alive at once; no plan needs less. "
    "PEAK is the size of the plan. Greedy orders are tried first and take milliseconds. Then an "
    "exact search runs until it has proven that no plan needs less, until the plan is within "
    "--capacity, or until --budget is used up; --budget 0 skips the search. Each plan is checked "
    "before it is reported: no two buffers that are alive at once overlap.\n\n"
    "CSV begins with a header line that names its columns, in any order: id,lower,upper,size and "
    "optionally alignment and offset. A buffer is alive from lower until just before upper, in any "
    "unit of time; size, alignment and offset are in bytes. JSON is an array of objects with these "
    "members, or an object that has such an array as \"buffers\".\n\n"
    "In a trace, each block is a buffer, and time is counted in calls. A block still alive at the "
    "end of the trace ends after the last call, a block made before the recording begins before "
    "the first call, and a resized block counts as two buffers. Buffers are aligned to at least 64 "
    "bytes, as the pool's blocks are. --from and --to select calls, such as those of one step.\n\n"
    "In the picture, each buffer is a rectangle, coloured by its size. Buffers smaller than two "
    "pixels are merged in grey and reported as a number.\n";

std::string line(std::string_view name, std::string_view value, const std::string& note = "") {
    return fmt::format("\n{:<12} {:>12}{}{}", name, value, note.empty() ? "" : "  ", note);
}

std::string how_good(const Outcome& outcome) {
    const MemoryPlan& plan = outcome.plan;
    std::string text = gap_text(plan.peak_bytes, plan.lower_bound_bytes) + " above the lower bound";
    if (outcome.checked) return text;
    return text + (plan.optimal ? "; proven optimal" : "; a smaller plan may exist");
}

std::string how_it_fits(const Outcome& outcome, Sizes sizes) {
    const std::uint64_t peak = outcome.plan.peak_bytes;
    const std::uint64_t capacity = outcome.capacity_bytes;
    if (peak <= capacity) {
        return fmt::format("the plan fits and leaves {}", format_size(capacity - peak, sizes));
    }
    return fmt::format("the plan does not fit: {} more are needed{}",
                       format_size(peak - capacity, sizes),
                       outcome.plan.lower_bound_bytes > capacity || outcome.plan.optimal
                           ? ", and no other plan fits"
                           : "");
}

}  // namespace

double gap_of(const MemoryPlan& plan) noexcept {
    if (plan.lower_bound_bytes == 0) return 0;
    return static_cast<double>(plan.peak_bytes - plan.lower_bound_bytes) /
           static_cast<double>(plan.lower_bound_bytes);
}

std::string report_text(const Outcome& outcome, Sizes sizes) {
    const MemoryPlan& plan = outcome.plan;
    std::string text = printable(outcome.file);
    if (!outcome.origin.empty()) text += ": " + outcome.origin;
    text += line("buffers", with_commas(outcome.buffers),
                 outcome.checked ? "the offsets are valid: no buffers alive at once overlap" : "");
    text += line("lower bound", format_size(plan.lower_bound_bytes, sizes),
                 "maximum bytes alive at once");
    text += line("peak", format_size(plan.peak_bytes, sizes), how_good(outcome));
    if (outcome.capacity_bytes != 0) {
        text += line("capacity", format_size(outcome.capacity_bytes, sizes),
                     how_it_fits(outcome, sizes));
    }
    if (outcome.checked) return text;
    text += line("method", to_string(plan.method));
    return text + line("time", format_ns(static_cast<std::uint64_t>(outcome.seconds * 1e9)));
}

std::string report_json(const Outcome& outcome) {
    const MemoryPlan& plan = outcome.plan;
    nlohmann::ordered_json json = {
        {"file", outcome.file},          {"origin", outcome.origin},
        {"buffers", outcome.buffers},    {"lower_bound_bytes", plan.lower_bound_bytes},
        {"peak_bytes", plan.peak_bytes}, {"gap", gap_of(plan)}};
    if (outcome.checked) {
        json["holds"] = true;
    } else {
        json.update({{"method", to_string(plan.method)},
                     {"optimal", plan.optimal},
                     {"seconds", outcome.seconds}});
    }
    if (outcome.capacity_bytes != 0) {
        json["capacity_bytes"] = outcome.capacity_bytes;
        json["fits"] = fits(outcome);
    }
    return json_line(json);
}

}  // namespace planning

void add_plan(CLI::App& app, Settings& settings) {
    add_subcommand(
        app, settings,
        {"plan", "Lay buffers out in minimal memory", planning::footer, planning::details},
        planning::plan_file, planning::add_options);
}

}  // namespace tensorpool::command
