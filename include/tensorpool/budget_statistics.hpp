#pragma once

/// @file
/// The statistics of a budget. Sizes are bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The state of one budget.
struct BudgetStatistics {
    /// The budget's name, zero-terminated.
    char name[48] = {};
    /// The number of the budget, which no other object of the process has.
    std::uint64_t id = 0;
    /// The number of the budget above it; 0 for a root.
    std::uint64_t parent = 0;
    /// The soft limit; 0 means none.
    std::uint64_t soft_bytes = 0;
    /// The hard limit; 0 means none.
    std::uint64_t hard_bytes = 0;
    /// What is charged to the budget and to those below it.
    std::uint64_t in_use_bytes = 0;
    /// The highest charge so far.
    std::uint64_t peak_bytes = 0;
    /// The requests that one of its limits refused.
    std::uint64_t refusals = 0;
    /// How often a holder was asked because one of its limits was reached.
    std::uint64_t reclaims = 0;
    /// The bytes that holders gave then.
    std::uint64_t reclaimed_bytes = 0;
};

/// Returns one JSON object whose keys are the names of the fields of BudgetStatistics.
TENSORPOOL_API std::string to_json(const BudgetStatistics& budget);

/// A budget in a tree.
struct BudgetPosition {
    /// The budget, an element of what `budget_tree` was called with.
    const BudgetStatistics* budget = nullptr;
    /// The number of budgets above it.
    std::size_t depth = 0;
};

/// Returns the budgets in the order in which a tree is written: each is followed by those below it,
/// those with one parent in the order in which they were made. A budget whose parent is not among
/// them counts as a root. `budgets` must be ordered by `id`, as in a snapshot, and outlive the
/// result. Throws std::bad_alloc.
TENSORPOOL_API std::vector<BudgetPosition> budget_tree(
    const std::vector<BudgetStatistics>& budgets);

}  // namespace tensorpool
