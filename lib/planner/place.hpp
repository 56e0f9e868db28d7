#pragma once

#include <cstdint>
#include <span>

#include "planner/problem.hpp"

namespace tensorpool::planner {

/// Which of the gaps between buffers that are alive with a new one takes it.
enum class Gap {
    first,  ///< the lowest
    best,   ///< the smallest, above all of them where it fits into none
};

/// Places buffers one after another and moves none: time grows with their number squared.
Packing place(const Problem& problem, std::span<const std::uint32_t> order, Gap gap);

}  // namespace tensorpool::planner
