#pragma once

/// @file
/// Runs the allocators in turns, and computes the results.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/allocator_process.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {

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

}  // namespace tensorpool::command::replay
