#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tensorpool/memory_plan.hpp>

#include "planner/problem.hpp"

namespace tensorpool::planner {

/// Buffers that share no moment with those of other sections: each section is packed alone, from
/// offset 0 up, and the one that needs most tells the peak.
struct Section {
    Problem problem;
    std::vector<std::uint32_t> origins;  ///< the caller's number of each buffer
};

/// Sections in the order of time, their buffers in the order of their beginnings, then as given.
/// Buffers of 0 bytes are in none. The lifetimes are checked (check_lifetimes).
std::vector<Section> compress(std::span<const TensorLifetime> lifetimes);

}  // namespace tensorpool::planner
