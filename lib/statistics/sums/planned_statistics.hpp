#pragma once

#include <tensorpool/planned_arena_statistics.hpp>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Returns the statistics of a planned arena, for the process itself and for readers of its
/// segment. Even if the record was overwritten, no value exceeds another that includes it.
PlannedArenaStatistics statistics_of(const PlannedRecord& planned) noexcept;

}  // namespace tensorpool::statistics
