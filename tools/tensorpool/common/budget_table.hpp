#pragma once

/// @file
/// A table of budgets.

#include <tensorpool/budget_statistics.hpp>

#include "common/table.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

/// One row for each budget, indented as a tree: what is charged, the limits, the share of the hard
/// limit, or else of the soft one, and what holders gave.
Table budget_table(const std::vector<BudgetStatistics>& budgets, Sizes sizes);

}  // namespace tensorpool::command
