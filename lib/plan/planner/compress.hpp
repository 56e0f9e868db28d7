#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tensorpool/memory_plan.hpp>

#include "plan/planner/problem.hpp"

namespace tensorpool::planner {

/// A set of buffers that are never alive together with those of other sections. Each section is
/// packed separately from offset 0 up; the section that needs the most bytes determines the peak.
struct Section {
    Problem problem;
    std::vector<std::uint32_t> origins;  ///< the caller's index of each buffer
};

/// Returns the sections in the order of time. The buffers of a section are sorted by their
/// beginnings, then by the caller's order. Buffers of 0 bytes are in no section.
/// Requires: the lifetimes passed `check_lifetimes`.
std::vector<Section> compress(std::span<const TensorLifetime> lifetimes);

}  // namespace tensorpool::planner
