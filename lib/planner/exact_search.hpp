#pragma once

#include <cstdint>

#include "planner/problem.hpp"
#include "planner/work.hpp"

namespace tensorpool::planner {

enum class SearchEnd {
    found,    ///< a packing within the capacity
    refuted,  ///< there is none: proven
    stopped,  ///< no more work was allowed
};

/// Whether the problem fits into `capacity` bytes; `packing` is written only when it does.
SearchEnd search_packing(const Problem& problem, std::uint64_t capacity, Work& work,
                         Packing& packing);

}  // namespace tensorpool::planner
