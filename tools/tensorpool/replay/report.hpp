#pragma once

/// @file
/// Runs the allocators in turns, computes the results, and formats them.

#include <spawn.h>
#include <sys/wait.h>

#include <iterator>

#include <nlohmann/json.hpp>

#include "common/cells.hpp"
#include "replay/allocator_task.hpp"

namespace tensorpool::command::replay {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct ReplayAllocator {
    std::string name;
    Calls calls = Calls::malloc;
    std::string library = {};   ///< prefix of the name of the file with `malloc`; "": any file
    bool preload = false;       ///< `library` has to be loaded by LD_PRELOAD
    std::string package = {};   ///< the Debian package with the library
    Variables variables = {};   ///< variables of its environment
    bool never_decays = false;  ///< jemalloc has to report that it keeps freed memory
};

/// One metric: its median over the rounds, and the median of its ratios to the pool's value of the
/// same round.
struct Median {
    double value = 0;
    std::optional<double> to_pool;  ///< nullopt if the pool is not compared, or its value is 0
};

struct Result {
    std::string allocator;
    std::vector<ReplayAnswer> rounds;
    Median elapsed_s;
    Median cpu_s;  ///< user and system
    Median system_s;
    Median minor_faults;
    Median peak_resident_bytes;  ///< without the replay's own memory
    double waste = 0;            ///< that divided by the maximum bytes alive at once
};

/// The replayed process, and how it was replayed.
struct Subject {
    std::string trace;  ///< path of the file
    std::uint64_t process = 0;
    std::string process_name;
    std::size_t processes = 1;  ///< in the file
    std::uint64_t dropped = 0;  ///< entries that the recorder dropped because a ring was full
    PlanStatistics statistics;
    std::string touch;
    std::uint64_t cut_bytes = 0;  ///< bytes at the end of the file that are no complete chunk
};

using Metric = double (*)(const ReplayAnswer&);

inline double seconds(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e9;
}

inline double peak(const ReplayAnswer& answer) {
    return static_cast<double>(std::max(answer.peak_bytes, answer.own_bytes) - answer.own_bytes);
}

/// Returns the median, or 0 if there are no values.
inline double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

inline Median median_of(const Result& result, const Result* pool, Metric metric) {
    std::vector<double> values;
    std::vector<double> ratios;
    for (std::size_t round = 0; round < result.rounds.size(); ++round) {
        values.push_back(metric(result.rounds[round]));
        const double base = pool != nullptr ? metric(pool->rounds[round]) : 0;
        if (base > 0) ratios.push_back(values.back() / base);
    }
    if (ratios.empty()) return {median(values), std::nullopt};
    return {median(values), median(ratios)};
}

inline Cell seconds_cell(double seconds) {
    return {fmt::format("{:.3f}", seconds), seconds};
}
inline Cell ratio_cell(std::optional<double> ratio) {
    return ratio ? Cell{fmt::format("{:.2f}", *ratio), *ratio} : Cell{"-", 0};
}

inline std::vector<Cell> row_of(const Result& result, Sizes sizes, bool with_ratios) {
    const double peak = result.peak_resident_bytes.value;
    std::vector<Cell> cells = {text_cell(result.allocator),
                               seconds_cell(result.elapsed_s.value),
                               seconds_cell(result.cpu_s.value),
                               seconds_cell(result.system_s.value),
                               count_cell(result.minor_faults.value),
                               size_cell(static_cast<std::uint64_t>(peak), sizes),
                               ratio_cell(result.waste)};
    if (!with_ratios) return cells;
    for (const Median* const metric :
         {&result.elapsed_s, &result.cpu_s, &result.minor_faults, &result.peak_resident_bytes}) {
        cells.push_back(ratio_cell(metric->to_pool));
    }
    return cells;
}

inline Table table_of(const std::vector<Result>& results, Sizes sizes) {
    const bool with_ratios = std::ranges::any_of(
        results, [](const Result& result) { return result.elapsed_s.to_pool.has_value(); });
    Table table;
    table.columns = {text_column("CONTENDER"), count_column("TIME s"), count_column("CPU s"),
                     count_column("SYSTEM s"), count_column("FAULTS"), size_column("PEAK"),
                     count_column("WASTE")};
    if (with_ratios) {
        for (const char* const title : {"TIME:POOL", "CPU:POOL", "FAULTS:POOL", "PEAK:POOL"}) {
            table.columns.push_back(count_column(title));
        }
    }
    for (const Result& result : results) {
        table.rows.push_back(row_of(result, sizes, with_ratios));
        table.keys.push_back(result.allocator);
    }
    return table;
}

inline std::string about(const Subject& subject, Sizes sizes) {
    const PlanStatistics& plan = subject.statistics;
    std::string text = fmt::format(
        "{}: process {} ({}){}, {} thread{}\n"
        "{} allocations ({} in total), {} frees, {} resizes; maximum alive at once {}\n",
        printable(subject.trace), subject.process, printable(subject.process_name),
        subject.processes > 1 ? fmt::format(" of {}", subject.processes) : "", plan.threads,
        plan.threads == 1 ? "" : "s", plan.allocations, format_size(plan.allocated_bytes, sizes),
        plan.deallocations, plan.resizes, format_size(plan.max_alive_bytes, sizes));
    if (plan.planned_bytes != 0) {
        text +=
            fmt::format("a plan of all blocks needs {}\n", format_size(plan.planned_bytes, sizes));
    }
    if (plan.from_before != 0) {
        text +=
            fmt::format("{} blocks from before the recording were allocated before the clock ran\n",
                        plan.from_before);
    }
    if (plan.never_freed != 0) {
        text += fmt::format("{} blocks were never freed, nor does the replay\n", plan.never_freed);
    }
    if (subject.dropped != 0) {
        text +=
            fmt::format("{} calls are missing: a ring of the recorder was full\n", subject.dropped);
    }
    if (subject.cut_bytes != 0) {
        text += fmt::format("the file is cut: its last {} bytes are not a complete chunk\n",
                            subject.cut_bytes);
    }
    return text;
}

inline std::string rounds_text(const Subject& subject, std::size_t rounds) {
    return fmt::format(
        "touched: {}; {}\n", subject.touch,
        rounds == 1 ? "one round" : fmt::format("medians of {} rounds, interleaved", rounds));
}

inline nlohmann::ordered_json median_json(const Median& median) {
    nlohmann::ordered_json json = {{"median", median.value}};
    if (median.to_pool) json["to_pool"] = *median.to_pool;
    return json;
}

inline nlohmann::ordered_json result_json(const Result& result) {
    nlohmann::ordered_json json = {{"contender", result.allocator},
                                   {"rounds", result.rounds.size()},
                                   {"elapsed_s", median_json(result.elapsed_s)},
                                   {"cpu_s", median_json(result.cpu_s)},
                                   {"system_s", median_json(result.system_s)},
                                   {"minor_faults", median_json(result.minor_faults)},
                                   {"peak_resident_bytes", median_json(result.peak_resident_bytes)},
                                   {"waste", result.waste}};
    for (const ReplayAnswer& round : result.rounds) {
        json["each_round"].push_back({{"elapsed_ns", round.elapsed_ns},
                                      {"user_ns", round.user_ns},
                                      {"system_ns", round.system_ns},
                                      {"minor_faults", round.minor_faults},
                                      {"major_faults", round.major_faults},
                                      {"own_bytes", round.own_bytes},
                                      {"peak_bytes", round.peak_bytes},
                                      {"allocations", round.allocations},
                                      {"deallocations", round.deallocations},
                                      {"resizes", round.resizes},
                                      {"malloc", round.malloc_file}});
    }
    return json;
}

/// Computes the medians of all results from their rounds.
inline void sum_up(std::vector<Result>& results, const PlanStatistics& statistics) {
    const auto found = std::ranges::find_if(
        results, [](const Result& result) { return result.allocator.starts_with("pool"); });
    const Result* const pool = found == results.end() ? nullptr : &*found;
    for (Result& result : results) {
        const auto of = [&](Metric metric) { return median_of(result, pool, metric); };
        result.elapsed_s = of([](const ReplayAnswer& a) { return seconds(a.elapsed_ns); });
        result.cpu_s = of([](const ReplayAnswer& a) { return seconds(a.user_ns + a.system_ns); });
        result.system_s = of([](const ReplayAnswer& a) { return seconds(a.system_ns); });
        result.minor_faults =
            of([](const ReplayAnswer& a) { return static_cast<double>(a.minor_faults); });
        result.peak_resident_bytes = of(peak);
        const auto alive = static_cast<double>(statistics.max_alive_bytes);
        result.waste = alive > 0 ? result.peak_resident_bytes.value / alive : 0;
    }
}

struct Ran {
    std::optional<ReplayAnswer> answer;
    int status = 0;
    std::string errors;
};

inline Descriptor memory_file(const char* name) {
    Descriptor file(memfd_create(name, MFD_CLOEXEC));
    if (file) return file;
    throw CommandError(
        finding, fmt::format("no file descriptor for an allocator: {}", std::strerror(errno)));
}

/// Returns whether a variable may change how an allocator works. LD_LIBRARY_PATH does not.
inline bool is_tuning(std::string_view variable) {
    static constexpr std::array beginnings = {
        "TENSORPOOL_", "LD_", "MALLOC_", "GLIBC_TUNABLES=", "TCMALLOC_", "MIMALLOC_", "JE_"};
    if (variable.starts_with("LD_LIBRARY_PATH=")) return false;
    return std::ranges::any_of(beginnings,
                               [&](const char* name) { return variable.starts_with(name); });
}

inline std::vector<std::string> environment_of(const ReplayAllocator& allocator) {
    std::vector<std::string> texts;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (!is_tuning(*variable)) texts.emplace_back(*variable);
    }
    if (allocator.preload) texts.push_back("LD_PRELOAD=" + allocator.library);
    for (const auto& [name, value] : allocator.variables) texts.push_back(name + '=' + value);
    return texts;
}

inline pid_t start(const ReplayAllocator& allocator, Touch touch, int plan, int answer,
                   int errors) {
    std::vector<std::string> arguments = {"tensorpool", ReplayTask::argument};
    for (const int number :
         {static_cast<int>(allocator.calls), static_cast<int>(touch), answer, plan}) {
        arguments.push_back(std::to_string(number));
    }
    std::vector<std::string> variables = environment_of(allocator);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // Duplicating a descriptor onto itself keeps it open over exec.
    for (const int kept : {answer, plan}) {
        if (kept >= 0) posix_spawn_file_actions_adddup2(&actions, kept, kept);
    }
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    pid_t process = -1;
    const int error = posix_spawn(&process, "/proc/self/exe", &actions, nullptr,
                                  null_ended(arguments).data(), null_ended(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return process;
    throw CommandError(finding,
                       fmt::format("no process for {}: {}", allocator.name, std::strerror(error)));
}

inline int wait_for(pid_t process) {
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

inline std::string content_of(int file) {
    std::string content(512, '\0');
    const ssize_t count = pread(file, content.data(), content.size(), 0);
    content.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    while (content.ends_with('\n')) content.pop_back();
    return printable(content);
}

inline Ran run(const ReplayAllocator& allocator, Touch touch, int plan) {
    const Descriptor answer = memory_file("answer");
    const Descriptor errors = memory_file("errors");
    Ran ran;
    ran.status = wait_for(start(allocator, touch, plan, answer.number(), errors.number()));
    ran.errors = content_of(errors.number());
    ReplayAnswer read = {};
    if (pread(answer.number(), &read, sizeof read, 0) == sizeof read) ran.answer = read;
    return ran;
}

inline std::string how_it_ended(const Ran& ran) {
    std::string text =
        WIFSIGNALED(ran.status)
            ? fmt::format("its process was ended by signal {} ({})", WTERMSIG(ran.status),
                          strsignal(WTERMSIG(ran.status)))
            : fmt::format("its process ended with status {}", WEXITSTATUS(ran.status));
    if (!ran.errors.empty()) text += ": " + ran.errors;
    return text;
}

inline std::string found_malloc(const ReplayAllocator& allocator, const ReplayAnswer& answer) {
    const std::string file = answer.malloc_file;
    const std::string& library = allocator.library;
    // The C library is libc.so.6, or has its version in the name, such as libc-2.31.so.
    if (library.empty() || file.starts_with(library + '.') || file.starts_with(library + '-') ||
        file == library) {
        return "";
    }
    return fmt::format("malloc is in {}, expected {} from the Debian package {}",
                       file.empty() ? "no file" : printable(file), library, allocator.package);
}

/// Runs this program again with the allocator and waits for its end. `plan` is a file descriptor.
/// Variables that tune allocators are not passed on, except those of `allocator`. Throws
/// CommandError if the process ends without measurements.
inline ReplayAnswer run_allocator(const ReplayAllocator& allocator, Touch touch, int plan) {
    const Ran ran = run(allocator, touch, plan);
    std::string problem = ran.answer ? ran.answer->problem : how_it_ended(ran);
    if (problem.empty()) problem = found_malloc(allocator, *ran.answer);
    if (problem.empty()) return *ran.answer;
    throw CommandError(finding, fmt::format("{}: {}", allocator.name, problem));
}

/// Runs each allocator once in each round; each round begins with another one. Throws CommandError
/// if one fails.
inline std::vector<Result> play_rounds(const std::vector<ReplayAllocator>& allocators,
                                       unsigned rounds, Touch touch, int plan,
                                       const PlanStatistics& statistics) {
    std::vector<Result> results;
    for (const ReplayAllocator& allocator : allocators)
        results.emplace_back().allocator = allocator.name;
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t turn = 0; turn < allocators.size(); ++turn) {
            const std::size_t i = (turn + round) % allocators.size();
            results[i].rounds.push_back(run_allocator(allocators[i], touch, plan));
        }
    }
    sum_up(results, statistics);
    return results;
}

/// Returns some lines about the subject, then the table.
inline std::string report_text(const Subject& subject, const std::vector<Result>& results,
                               Sizes sizes) {
    const std::size_t rounds = results.empty() ? 0 : results.front().rounds.size();
    std::string text = about(subject, sizes) + rounds_text(subject, rounds);
    text += '\n' + table_text(table_of(results, sizes));
    text.pop_back();
    return text;
}

/// Returns one JSON object in each line: the subject, then each allocator.
inline std::string report_json(const Subject& subject, const std::vector<Result>& results) {
    const PlanStatistics& plan = subject.statistics;
    const nlohmann::ordered_json about = {{"trace", printable(subject.trace)},
                                          {"process", subject.process},
                                          {"process_name", printable(subject.process_name)},
                                          {"processes", subject.processes},
                                          {"threads", plan.threads},
                                          {"allocations", plan.allocations},
                                          {"deallocations", plan.deallocations},
                                          {"resizes", plan.resizes},
                                          {"from_before", plan.from_before},
                                          {"never_freed", plan.never_freed},
                                          {"dropped", subject.dropped},
                                          {"cut_bytes", subject.cut_bytes},
                                          {"allocated_bytes", plan.allocated_bytes},
                                          {"most_alive_bytes", plan.max_alive_bytes},
                                          {"planned_bytes", plan.planned_bytes},
                                          {"touch", subject.touch}};
    std::string text = about.dump();
    for (const Result& result : results) text += '\n' + result_json(result).dump();
    return text;
}

struct PoolOption {
    const char* name;
    const char* variable;  // read by the global pool: see <tensorpool/pool_options.hpp>
};

inline constexpr PoolOption pool_options[] = {
    {"initial_capacity", "TENSORPOOL_INITIAL_CAPACITY"},
    {"max_capacity", "TENSORPOOL_MAX_CAPACITY"},
    {"max_allocation", "TENSORPOOL_MAX_ALLOCATION"},
    {"growth_step", "TENSORPOOL_GROWTH_STEP"},
    {"growth_factor", "TENSORPOOL_GROWTH_FACTOR"},
    {"growth_fraction", "TENSORPOOL_GROWTH_FRACTION"},
    {"retain", "TENSORPOOL_RETAIN_BYTES"},
    {"retain_ms", "TENSORPOOL_RETAIN_MS"},
    {"retain_background", "TENSORPOOL_RETAIN_BACKGROUND"},
    {"huge_pages", "TENSORPOOL_HUGE_PAGES"},
    {"numa", "TENSORPOOL_NUMA"},
    {"checks", "TENSORPOOL_CHECKS"},
};

/// Makes jemalloc keep freed memory forever and treat large blocks as others, as its users do for
/// programs of this kind.
inline constexpr const char* tuned = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0";

inline const std::vector<ReplayAllocator>& known() {
    static const std::vector<ReplayAllocator> allocators = {
        {"none", Calls::floor},
        {"plan", Calls::plan},
        {"pool", Calls::pool},
        {"glibc", Calls::malloc, "libc", false, "libc6"},
        {"tcmalloc", Calls::malloc, "libtcmalloc_minimal.so.4", true, "libtcmalloc-minimal4"},
        {"jemalloc", Calls::malloc, "libjemalloc.so.2", true, "libjemalloc2"},
        {"jemalloc-tuned",
         Calls::malloc,
         "libjemalloc.so.2",
         true,
         "libjemalloc2",
         {{"MALLOC_CONF", tuned}},
         true},
        {"mimalloc", Calls::malloc, "libmimalloc.so.2", true, "libmimalloc2.0"},
    };
    return allocators;
}

inline std::vector<std::string> parts_of(const std::string& text, char between) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(between, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

/// Returns the names of the pool's options, separated by commas.
inline std::string option_names() {
    std::string names;
    for (const PoolOption& option : pool_options) names += fmt::format(", {}", option.name);
    return names.substr(2);
}

/// Returns the environment variables for options written as NAME=VALUE. Throws CommandError for an
/// unknown name.
inline Variables pool_variables(std::span<const std::string> options) {
    Variables variables;
    for (const std::string& option : options) {
        const std::size_t equals = option.find('=');
        const std::string name = option.substr(0, equals);
        const auto* const found = std::ranges::find(pool_options, name, &PoolOption::name);
        if (equals == std::string::npos || found == std::end(pool_options)) {
            throw CommandError(wrong_usage,
                               fmt::format("{} is not an option of the pool, NAME=VALUE; there "
                                           "are {}",
                                           printable(option), option_names()));
        }
        variables.emplace_back(found->variable, option.substr(equals + 1));
    }
    return variables;
}

/// Returns the names of all allocators, separated by commas.
inline std::string allocator_names() {
    std::string names;
    for (const ReplayAllocator& allocator : known()) names += ", " + allocator.name;
    return names.substr(2);
}

inline ReplayAllocator allocator_of(const std::string& word) {
    const std::vector<std::string> parts = parts_of(word, ':');
    const auto found = std::ranges::find(known(), parts.front(), &ReplayAllocator::name);
    if (found == known().end()) {
        throw CommandError(wrong_usage,
                           fmt::format("--against: there is no allocator {}; there are {}",
                                       printable(parts.front()), allocator_names()));
    }
    ReplayAllocator allocator = *found;
    if (parts.size() == 1) return allocator;
    if (allocator.calls != Calls::pool) {
        throw CommandError(wrong_usage,
                           fmt::format("--against: only the pool takes options, not {}; found {}",
                                       allocator.name, printable(word)));
    }
    allocator.name = word;
    allocator.variables = pool_variables(std::span(parts).subspan(1));
    return allocator;
}

/// Returns the allocators of these names, in the same order. `pool:NAME=VALUE:…` is the pool with
/// options of its own; `options` apply to pools without. Throws CommandError for an unknown name,
/// with a list of the known ones.
inline std::vector<ReplayAllocator> allocators_of(std::span<const std::string> names,
                                                  std::span<const std::string> options) {
    std::vector<ReplayAllocator> allocators;
    std::ranges::transform(names, std::back_inserter(allocators), allocator_of);
    const Variables variables = pool_variables(options);
    for (ReplayAllocator& allocator : allocators) {
        if (allocator.calls == Calls::pool && allocator.variables.empty()) {
            allocator.variables = variables;
        }
    }
    return allocators;
}

/// Returns why an allocator is not available, with a hint for the user; "" if it is available.
/// Throws CommandError if the pool rejects its options.
inline std::string why_unavailable(const ReplayAllocator& allocator) {
    const Ran ran = run(allocator, Touch::none, -1);
    if (!ran.answer) return how_it_ended(ran);
    if (allocator.calls == Calls::pool && !ran.errors.empty()) {
        throw CommandError(wrong_usage,
                           fmt::format("{} rejects its options: {}", allocator.name, ran.errors));
    }
    if (std::string problem = found_malloc(allocator, *ran.answer); !problem.empty()) {
        return problem;
    }
    return allocator.never_decays && ran.answer->never_decays == 0
               ? "jemalloc ignored MALLOC_CONF, or is not built as Debian's is"
               : "";
}

}  // namespace tensorpool::command::replay
