#pragma once

/// @file
/// Runs the allocators in turns, computes the results, and formats them.

#include "common/units.hpp"
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

/// Runs each allocator once in each round; each round begins with another one. Throws CommandError
/// if one fails.
std::vector<Result> play_rounds(const std::vector<ReplayAllocator>& allocators, unsigned rounds,
                                Touch touch, int plan, const PlanStatistics& statistics);

/// Computes the medians of all results from their rounds.
void sum_up(std::vector<Result>& results, const PlanStatistics& statistics);

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

/// Returns some lines about the subject, then the table.
std::string report_text(const Subject& subject, const std::vector<Result>& results, Sizes sizes);
/// Returns one JSON object in each line: the subject, then each allocator.
std::string report_json(const Subject& subject, const std::vector<Result>& results);

}  // namespace tensorpool::command::replay
