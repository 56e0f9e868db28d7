#pragma once

#include "plan/planner/problem.hpp"

namespace tensorpool::planner {

/// Returns the maximum bytes alive in one slice, which no packing can go below. Sizes are rounded
/// up to the smallest alignment of all buffers, because padding follows each buffer but the
/// highest. The largest padding of the slice is therefore not counted.
std::uint64_t lower_bound(const Problem& problem);

/// Returns a number of bytes that divides all offsets and ends of some minimum packing. It divides
/// those of every packing whose buffers lie as low as the buffers below them and their own
/// alignments allow.
std::uint64_t granule(const Problem& problem);

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
