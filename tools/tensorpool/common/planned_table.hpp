#pragma once

/// @file
/// A table of planned arenas.

#include <tensorpool/planned_arena_statistics.hpp>

#include "common/table.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

/// One row for each arena: the lower bound for any allocator, the pool's peak, the plan's peak, and
/// the number of requests that the plan served.
Table planned_table(const std::vector<PlannedArenaStatistics>& arenas, Sizes sizes);

}  // namespace tensorpool::command
