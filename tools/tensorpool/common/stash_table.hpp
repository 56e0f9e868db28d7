#pragma once

/// @file
/// A table of memory at rest.

#include <tensorpool/process_snapshot.hpp>

#include "common/table.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

/// One row for each name of stashes or frozen blocks, and for each map: what is in memory as it is,
/// what rests and what that takes, how often and how long it was brought back, and the budget.
Table stash_table(const ProcessSnapshot& snapshot, Sizes sizes);

}  // namespace tensorpool::command
