#pragma once

#include <cstdint>
#include <vector>

#include <tensorpool/memory_plan.hpp>

#include "plan/planner/problem.hpp"

namespace tensorpool::planner {

/// Returns the indices of all buffers in a greedy order. `method` is one of `by_size` to `by_time`.
/// Buffers that compare equal keep their order in the problem.
std::vector<std::uint32_t> order_of(const Problem& problem, PlanMethod method);

}  // namespace tensorpool::planner
