#pragma once

#include <cstdint>

#include "plan/planner/problem.hpp"
#include "plan/planner/work.hpp"

namespace tensorpool::planner {

/// Lowers the peak of a packing until it is at most `enough_bytes`, a capacity is not reached, or
/// the work is over. Buffers above a capacity are moved to other offsets. The buffers in the way
/// there are taken out and placed again, the largest first. A buffer that found no gap becomes more
/// expensive to move, so that other buffers make room the next time. The method is that of Nagata
/// and Bräysy, "A powerful route minimization heuristic for the vehicle routing problem with time
/// windows", 2009, who apply it to the stops of a route. Returns whether the peak was lowered.
bool repack(const Problem& problem, std::uint64_t enough_bytes, Work& work, Packing& packing);

}  // namespace tensorpool::planner
