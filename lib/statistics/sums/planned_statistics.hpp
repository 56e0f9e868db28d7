#pragma once

#include <tensorpool/planned_arena_statistics.hpp>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// The figures of a planned arena, for itself and for who reads its segment. Whatever the words
/// are, none of these is more than another that contains it.
PlannedArenaStatistics figures_of(const PlannedRecord& planned) noexcept;

}  // namespace tensorpool::statistics
