#pragma once

#include <cstdint>

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

}  // namespace tensorpool::planner
