#pragma once

#include "plan/planner/offset_list.hpp"

namespace tensorpool::planner {

/// The bytes alive in each slice, with fast queries for the maximum within an interval. Values are
/// rounded to double, which is enough for comparisons.
class Loads {
public:
    explicit Loads(const Problem& problem);

    /// Returns the maximum over the slices [begin, end). Requires: begin < end.
    double max(std::uint32_t begin, std::uint32_t end) const;
    /// Returns the maximum over all slices.
    double max() const { return max(0, static_cast<std::uint32_t>(levels_[0].size())); }

private:
    /// Level k holds, for each slice, the maximum of the 2^k slices that start there.
    std::vector<std::vector<double>> levels_;
};

struct Placing {
    Packing packing;
    std::uint64_t comparisons = 0;  ///< with buffers that might be in the way, about 2 ns each
};

/// Places the buffers in the given order, each among those placed before, and moves none.
Placing place(const Problem& problem, std::span<const std::uint32_t> order, Gap gap);

/// Returns the indices of all buffers in a greedy order. `method` is one of `by_size` to `by_time`.
/// Buffers that compare equal keep their order in the problem.
std::vector<std::uint32_t> order_of(const Problem& problem, PlanMethod method);

/// A packing and the method that found it.
struct Candidate {
    Packing packing;
    PlanMethod method = PlanMethod::none;
};

/// Returns the best packing of the greedy orders. The first order is always tried. Further orders
/// are tried until a packing needs at most `enough_bytes`, the deadline has passed, or about half a
/// second of comparisons is spent.
Candidate best_greedy(const Problem& problem, std::uint64_t enough_bytes,
                      Work::Clock::time_point deadline = Work::Clock::time_point::max());

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
