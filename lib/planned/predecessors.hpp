#pragma once

#include <cstdint>
#include <vector>

#include "planned/learned_plan.hpp"

namespace tensorpool::planned {

/// For each slot of a plan the slots before it, as PlanTables has it.
struct Befores {
    std::vector<std::uint32_t> numbers;
    std::vector<std::size_t> first;  ///< of each slot, and the end: one more than there are slots
};

/// In n log n steps; of all slots together they are at most four times as many as slots, for each
/// slot cuts what lay there into two pieces more at most.
Befores find_predecessors(const LearnedPlan& plan);

}  // namespace tensorpool::planned
