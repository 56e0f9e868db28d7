#pragma once

/// @file
/// Contenders by turns, and what came of it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/contender_process.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {

/// One figure: the median over the rounds, and of each round's ratio to the pool of that round.
struct Median {
    double value = 0;
    std::optional<double> to_pool;  ///< none where the pool was not asked, or used nothing
};

struct Result {
    std::string contender;
    std::vector<ContenderAnswer> rounds;
    Median elapsed_s;
    Median cpu_s;  ///< user and system
    Median system_s;
    Median minor_faults;
    Median peak_resident_bytes;  ///< the replay's own left out
    double waste = 0;            ///< that over the most bytes that were alive at once
};

/// Each contender once a round, each round beginning with another. Throws CommandError where one
/// fails.
std::vector<Result> play_rounds(const std::vector<Contender>& contenders, unsigned rounds,
                                Touch touch, int plan, const PlanFigures& figures);

/// The figures of rounds that are there.
void sum_up(std::vector<Result>& results, const PlanFigures& figures);

}  // namespace tensorpool::command::replay
