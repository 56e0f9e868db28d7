#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem.hpp"

namespace tensorpool::planner {

/// The bytes alive in each slice, to ask for the most within an interval. Rounded: for comparisons.
class Loads {
public:
    explicit Loads(const Problem& problem);

    /// Of the slices [begin, end), which are some.
    double most(std::uint32_t begin, std::uint32_t end) const;
    double most() const { return most(0, static_cast<std::uint32_t>(levels_[0].size())); }

private:
    /// Level k holds, for each slice, the most of 2^k slices from there on.
    std::vector<std::vector<double>> levels_;
};

}  // namespace tensorpool::planner
