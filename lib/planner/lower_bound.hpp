#pragma once

#include <cstdint>

#include "planner/problem.hpp"

namespace tensorpool::planner {

/// The most bytes alive in one slice. Where all buffers share an alignment, each but the highest is
/// followed by its padding: sizes count rounded up to it, but for the largest padding of the slice.
std::uint64_t lower_bound(const Problem& problem);

/// What all offsets and ends of some least packing are multiples of: of any packing whose buffers
/// lie as low as those below them and their own alignments allow.
std::uint64_t granule(const Problem& problem);

}  // namespace tensorpool::planner
