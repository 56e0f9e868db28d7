#pragma once

#include <cstdint>

#include "planner/portfolio.hpp"
#include "planner/problem.hpp"
#include "planner/work.hpp"

namespace tensorpool::planner {

/// Searches for packings below `best`, by repacking it and then by the exact search, until one
/// needs at most `enough_bytes`, or there is none, or the work is over. Returns what is proven to
/// be needed, at least `proven_bytes`: that much was proven before.
std::uint64_t shrink(const Problem& problem, std::uint64_t proven_bytes, std::uint64_t enough_bytes,
                     Work& work, Candidate& best);

}  // namespace tensorpool::planner
