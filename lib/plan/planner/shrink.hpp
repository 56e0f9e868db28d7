#pragma once

#include <cstdint>

#include "plan/planner/portfolio.hpp"
#include "plan/planner/problem.hpp"
#include "plan/planner/work.hpp"

namespace tensorpool::planner {

/// Searches for packings with a lower peak than `best`, by repacking and then by exact search. Ends
/// when one needs at most `enough_bytes`, when it is proven that none is lower, or when the work is
/// over. `proven_bytes` are known to be needed before. Returns the bytes proven to be needed.
std::uint64_t shrink(const Problem& problem, std::uint64_t proven_bytes, std::uint64_t enough_bytes,
                     Work& work, Candidate& best);

}  // namespace tensorpool::planner
