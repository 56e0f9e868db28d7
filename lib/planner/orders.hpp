#pragma once

#include <cstdint>
#include <vector>

#include <tensorpool/memory_plan.hpp>

#include "planner/problem.hpp"

namespace tensorpool::planner {

/// The numbers of all buffers in a greedy order, which is any method from `by_size` to `by_time`.
/// Equal ones stay as they are in the problem.
std::vector<std::uint32_t> order_of(const Problem& problem, PlanMethod method);

}  // namespace tensorpool::planner
