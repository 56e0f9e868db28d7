#pragma once

#include <cstdint>
#include <span>

#include "plan/planner/offset_list.hpp"
#include "plan/planner/problem.hpp"

namespace tensorpool::planner {

struct Placing {
    Packing packing;
    std::uint64_t comparisons = 0;  ///< with buffers that might be in the way, about 2 ns each
};

/// Places the buffers in the given order, each among those placed before, and moves none.
Placing place(const Problem& problem, std::span<const std::uint32_t> order, Gap gap);

}  // namespace tensorpool::planner
