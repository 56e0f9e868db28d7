#pragma once

#include "plan/planner/portfolio.hpp"

namespace tensorpool::planner {

/// Lowers the peak of a packing until it is at most `enough_bytes`, a capacity is not reached, or
/// the work is over. Buffers above a capacity are moved to other offsets. The buffers in the way
/// there are taken out and placed again, the largest first. A buffer that found no gap becomes more
/// expensive to move, so that other buffers make room the next time. The method is that of Nagata
/// and Bräysy, "A powerful route minimization heuristic for the vehicle routing problem with time
/// windows", 2009, who apply it to the stops of a route. Returns whether the peak was lowered.
bool repack(const Problem& problem, std::uint64_t enough_bytes, Work& work, Packing& packing);

/// Searches for packings with a lower peak than `best`, by repacking and then by exact search. Ends
/// when one needs at most `enough_bytes`, when it is proven that none is lower, or when the work is
/// over. `proven_bytes` are known to be needed before. Returns the bytes proven to be needed.
std::uint64_t shrink(const Problem& problem, std::uint64_t proven_bytes, std::uint64_t enough_bytes,
                     Work& work, Candidate& best);

}  // namespace tensorpool::planner
