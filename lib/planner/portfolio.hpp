#pragma once

#include <cstdint>

#include <tensorpool/memory_plan.hpp>

#include "planner/problem.hpp"
#include "planner/work.hpp"

namespace tensorpool::planner {

/// A packing and what found it.
struct Candidate {
    Packing packing;
    PlanMethod method = PlanMethod::none;
};

/// The best of the greedy orders, of as many as take a moment. The first within `enough_bytes` ends
/// the matter, and after the deadline no further one is begun; the first is always tried.
Candidate best_greedy(const Problem& problem, std::uint64_t enough_bytes,
                      Work::Clock::time_point deadline = Work::Clock::time_point::max());

}  // namespace tensorpool::planner
