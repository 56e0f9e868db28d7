#pragma once

/// @file
/// The statistics of a budget. Sizes are bytes.

#include <cstdint>
#include <string>

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

}  // namespace tensorpool
