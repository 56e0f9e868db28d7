#pragma once

/// @file
/// Runs the allocators in turns, computes the results, and formats them.

#include <nlohmann/json.hpp>

#include "common/cells.hpp"
#include "replay/allocator_task.hpp"

namespace tensorpool::command::replay {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct ReplayAllocator {
    std::string name;
    Calls calls = Calls::malloc;
    std::string library;        ///< prefix of the name of the file with `malloc`; "": any file
    bool preload = false;       ///< `library` has to be loaded by LD_PRELOAD
    std::string package;        ///< the Debian package with the library
    Variables variables;        ///< variables of its environment
    bool never_decays = false;  ///< jemalloc has to report that it keeps freed memory
};

/// Returns the allocators of these names, in the same order. `pool:NAME=VALUE:…` is the pool with
/// options of its own; `options` apply to pools without. Throws CommandError for an unknown name,
/// with a list of the known ones.
std::vector<ReplayAllocator> allocators_of(std::span<const std::string> names,
                                           std::span<const std::string> options);

/// Returns the names of all allocators, separated by commas.
std::string allocator_names();
/// Returns the names of the pool's options, separated by commas.
std::string option_names();

/// Returns the environment variables for options written as NAME=VALUE. Throws CommandError for an
/// unknown name.
Variables pool_variables(std::span<const std::string> options);

/// Runs this program again with the allocator and waits for its end. `plan` is a file descriptor.
/// Variables that tune allocators are not passed on, except those of `allocator`. Throws
/// CommandError if the process ends without measurements.
ReplayAnswer run_allocator(const ReplayAllocator& allocator, Touch touch, int plan);

/// Returns why an allocator is not available, with a hint for the user; "" if it is available.
/// Throws CommandError if the pool rejects its options.
std::string why_unavailable(const ReplayAllocator& allocator);

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

}  // namespace tensorpool::command::replay
