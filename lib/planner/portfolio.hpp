#pragma once

#include <cstdint>

#include <tensorpool/memory_plan.hpp>

#include "planner/problem.hpp"

namespace tensorpool::planner {

/// A packing and what found it.
struct Candidate {
    Packing packing;
    PlanMethod method = PlanMethod::none;
};

/// The best of the greedy orders, of as many as take a moment. The first within `enough_bytes` ends
/// the matter.
Candidate best_greedy(const Problem& problem, std::uint64_t enough_bytes);

}  // namespace tensorpool::planner
