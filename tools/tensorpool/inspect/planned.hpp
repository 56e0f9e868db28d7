#pragma once

/// @file
/// The memory that the recorded blocks would have needed if their lifetimes had been known.

#include <cstdint>

#include <tensorpool/memory_plan.hpp>

#include "formats/trace/history.hpp"

namespace tensorpool::command::inspect {

using trace::History;
using trace::Lifetime;

struct Planned {
    bool made = false;      ///< false: the sizes in a damaged file exceed any memory
    bool searched = false;  ///< searched after the greedy orders, for at most a fifth of a second
    std::uint64_t peak_bytes = 0;
    std::uint64_t lower_bound_bytes = 0;
    bool optimal = false;
    PlanMethod method = PlanMethod::none;
};

/// Plans all blocks in one block of memory, each aligned to 64 bytes as in a pool, or as requested
/// if that is more. For more than 20,000 blocks it uses only greedy orders, so that the report is
/// not delayed.
Planned plan_of(const History& history);

}  // namespace tensorpool::command::inspect
