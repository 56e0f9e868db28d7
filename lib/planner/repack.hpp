#pragma once

#include <cstdint>

#include "planner/problem.hpp"
#include "planner/work.hpp"

namespace tensorpool::planner {

/// Lowers the peak of a packing until it is at most `enough_bytes`, or that gets too hard, or the
/// work is over: what lies above a capacity takes other places, and what is in its way there makes
/// room and looks for another, the largest first. A buffer that found no gap gets harder to move,
/// so that the next time something else makes room. Nagata and Bräysy, "A powerful route
/// minimization heuristic for the vehicle routing problem with time windows", 2009, do so with the
/// stops of a route. Returns whether the peak is lower than before.
bool repack(const Problem& problem, std::uint64_t enough_bytes, Work& work, Packing& packing);

}  // namespace tensorpool::planner
