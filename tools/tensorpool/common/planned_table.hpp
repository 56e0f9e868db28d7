#pragma once

/// @file
/// Planned arenas in a table.

#include <vector>

#include <tensorpool/planned_arena_statistics.hpp>

#include "common/table.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

/// One row each: what no allocator could go below, the pool's peak, the plan's, and how many
/// requests the plan served.
Table planned_table(const std::vector<PlannedArenaStatistics>& arenas, Sizes sizes);

}  // namespace tensorpool::command
