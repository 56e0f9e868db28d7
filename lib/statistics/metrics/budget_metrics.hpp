#pragma once

#include <tensorpool/budget_statistics.hpp>
#include <tensorpool/detail/counters.hpp>

#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

using detail::Counter;

/// Counters of a budget. Written under the lock of all budgets. Contains no pointers because it
/// lies in the shared segment.
struct BudgetTotals {
    Counter soft_bytes = 0;  // as are the next: 0 means no limit
    Counter hard_bytes = 0;
    Counter in_use_bytes = 0;
    Counter peak_bytes = 0;
    Counter refusals = 0;
    Counter reclaims = 0;
    Counter reclaimed_bytes = 0;
};

/// Metrics of a budget.
template <>
struct Metrics<BudgetStatistics> {
    using enum MetricKind;
    using Of = BudgetStatistics;
    static constexpr const char* of = "budget";
    static constexpr Metric<Of, BudgetTotals> all[] = {
        {"id", &Of::id, "number", gauge, "Number that no other object of the process has."},
        {"parent", &Of::parent, "number", gauge, "Number of the budget above it; 0 for a root."},
        {"soft_bytes", &Of::soft_bytes, "bytes", gauge,
         "Soft limit, before which holders are asked for memory; 0 means none.", "",
         &BudgetTotals::soft_bytes},
        {"hard_bytes", &Of::hard_bytes, "bytes", gauge, "Hard limit; 0 means none.", "",
         &BudgetTotals::hard_bytes},
        {"in_use_bytes", &Of::in_use_bytes, "bytes", gauge,
         "Bytes charged to the budget and to those below it.", "tensorpool_budget_in_use_bytes",
         &BudgetTotals::in_use_bytes},
        {"peak_bytes", &Of::peak_bytes, "bytes", peak, "Highest number of bytes charged at once.",
         "tensorpool_budget_peak_bytes", &BudgetTotals::peak_bytes},
        {"refusals", &Of::refusals, "requests", total, "Requests that one of its limits refused.",
         "tensorpool_budget_refusals_total", &BudgetTotals::refusals},
        {"reclaims", &Of::reclaims, "times", total,
         "Times that a holder was asked for memory because of its limits.",
         "tensorpool_budget_reclaims_total", &BudgetTotals::reclaims},
        {"reclaimed_bytes", &Of::reclaimed_bytes, "bytes", total, "Bytes that holders gave then.",
         "tensorpool_budget_reclaimed_bytes_total", &BudgetTotals::reclaimed_bytes},
    };
};

}  // namespace tensorpool::statistics
