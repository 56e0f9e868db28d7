#pragma once

#include <cstdint>
#include <vector>

#include "plan/learned_plan.hpp"

namespace tensorpool::planned {

/// The predecessors of each buffer of a plan, as plan_tables.hpp defines them.
struct Predecessors {
    std::vector<std::uint32_t> numbers;  ///< the lists of all buffers, one after another
    /// The index in `numbers` at which each buffer's list begins; the last entry is the end.
    std::vector<std::size_t> first;
};

/// Finds all predecessors in O(n log n) steps. Their number is at most four times the number of
/// buffers, because each buffer splits the existing ranges into at most two more.
Predecessors find_predecessors(const LearnedPlan& plan);

}  // namespace tensorpool::planned
