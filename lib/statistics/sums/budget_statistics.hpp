#pragma once

#include <vector>

#include <tensorpool/budget_statistics.hpp>

#include "statistics/segment/segment_image.hpp"

namespace tensorpool::statistics {

/// Returns what the record of one budget says.
BudgetStatistics statistics_of(const BudgetRecord& budget) noexcept;

/// Returns the statistics of the budgets with a record, in the order in which they were made:
/// parents come before their children.
std::vector<BudgetStatistics> budgets_in(const SegmentImage& image);

}  // namespace tensorpool::statistics
