#pragma once

#include <cstddef>

#include <tensorpool/arena_statistics.hpp>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// The figures of an arena or a scratch, for itself and for who reads its segment. Whatever the
/// words are, none of these is more than another that contains it.
ArenaStatistics figures_of(const ArenaRecord& arena) noexcept;

/// Of what arenas and scratches of this process have committed: what lies above all that they ever
/// handed out. Those without a record in the segment are not seen.
std::size_t bytes_above_peaks_of_arenas() noexcept;

}  // namespace tensorpool::statistics
