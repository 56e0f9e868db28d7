#pragma once

#include <cstdint>
#include <vector>

#include "plan/planner/problem.hpp"

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

}  // namespace tensorpool::planner
