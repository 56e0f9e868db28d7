#pragma once

#include <cstddef>

#include <tensorpool/arena_statistics.hpp>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Returns the statistics of an arena or a scratch, for the process itself and for readers of its
/// segment. Even if the record was overwritten, no value exceeds another that includes it.
ArenaStatistics statistics_of(const ArenaRecord& arena) noexcept;

/// Returns how many of the charged bytes of arenas and scratches of this process were never handed
/// out or touched. Arenas without a record in the segment are not included.
std::size_t bytes_above_peaks_of_arenas() noexcept;

}  // namespace tensorpool::statistics
