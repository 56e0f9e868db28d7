#pragma once

#include <cstdint>

#include <tensorpool/memory_plan.hpp>

#include "plan/planner/problem.hpp"
#include "plan/planner/work.hpp"

namespace tensorpool::planner {

/// A packing and the method that found it.
struct Candidate {
    Packing packing;
    PlanMethod method = PlanMethod::none;
};

/// Returns the best packing of the greedy orders. The first order is always tried. Further orders
/// are tried until a packing needs at most `enough_bytes`, the deadline has passed, or about half a
/// second of comparisons is spent.
Candidate best_greedy(const Problem& problem, std::uint64_t enough_bytes,
                      Work::Clock::time_point deadline = Work::Clock::time_point::max());

}  // namespace tensorpool::planner
