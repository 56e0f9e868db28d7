#pragma once

#include <cstdint>
#include <span>

#include "planner/offset_list.hpp"
#include "planner/problem.hpp"

namespace tensorpool::planner {

struct Placing {
    Packing packing;
    std::uint64_t looks = 0;  ///< at buffers that might be in the way of another, about 2 ns each
};

/// Places buffers one after another, each among those placed before, and moves none.
Placing place(const Problem& problem, std::span<const std::uint32_t> order, Gap gap);

}  // namespace tensorpool::planner
