#pragma once

/// @file
/// What the recorded blocks would have needed, had their lives been known before.

#include <cstdint>

#include <tensorpool/memory_plan.hpp>

#include "inspect/history.hpp"

namespace tensorpool::command::inspect {

struct Planned {
    bool made = false;      ///< false: sizes of a damaged file are beyond any memory
    bool searched = false;  ///< beyond the greedy orders, for a fifth of a second at most
    std::uint64_t peak_bytes = 0;
    std::uint64_t lower_bound_bytes = 0;
    bool optimal = false;
    PlanMethod method = PlanMethod::none;
};

/// Lays all blocks out in one piece of memory, each aligned as pools align theirs, or as was asked
/// for. Where there are more than 20,000 blocks only by greedy orders, so that the report does not
/// wait for it.
Planned plan_of(const History& history);

}  // namespace tensorpool::command::inspect
