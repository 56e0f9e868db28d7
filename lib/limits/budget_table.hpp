#pragma once

#include <tensorpool/budget_statistics.hpp>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

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

/// One budget.
struct alignas(64) BudgetRecord {
    Counter id;
    Name name;
    Counter parent;  // the number of the budget above it; 0 for a root
    BudgetTotals totals;

    using Statistics = BudgetStatistics;
    static const RecordKind layout;
};

namespace budgets {

using enum MetricKind;
using Of = BudgetRecord;

inline constexpr Field fields[] = {
    {"id", "number", gauge, "Number that no other object of the process has.", "",
     offsetof(Of, id)},
    {"parent", "number", gauge, "Number of the budget above it; 0 for a root.", "",
     offsetof(Of, parent)},
    {"soft_bytes", "bytes", gauge,
     "Soft limit, before which holders are asked for memory; 0 means none.", "",
     offsetof(Of, totals.soft_bytes)},
    {"hard_bytes", "bytes", gauge, "Hard limit; 0 means none.", "",
     offsetof(Of, totals.hard_bytes)},
    {"in_use_bytes", "bytes", gauge, "Bytes charged to the budget and to those below it.",
     "tensorpool_budget_in_use_bytes", offsetof(Of, totals.in_use_bytes)},
    {"peak_bytes", "bytes", peak, "Highest number of bytes charged at once.",
     "tensorpool_budget_peak_bytes", offsetof(Of, totals.peak_bytes)},
    {"refusals", "requests", total, "Requests that one of its limits refused.",
     "tensorpool_budget_refusals_total", offsetof(Of, totals.refusals)},
    {"reclaims", "times", total, "Times that a holder was asked for memory because of its limits.",
     "tensorpool_budget_reclaims_total", offsetof(Of, totals.reclaims)},
    {"reclaimed_bytes", "bytes", total, "Bytes that holders gave then.",
     "tensorpool_budget_reclaimed_bytes_total", offsetof(Of, totals.reclaimed_bytes)},
    {.name = "limit", .unit = "bytes", .use = Use::derived},
};
inline constexpr IndexOf<fields> at;
// Another process writes at the same time.
inline constexpr Rule rules[] = {{Rule::at_least, at("peak_bytes"), at("in_use_bytes")}};
inline constexpr Rule derivations[] = {
    {Rule::plus, at("limit"), at("hard_bytes")},
    {Rule::or_else, at("limit"), at("soft_bytes")},
};
inline constexpr Family families[] = {
    single("tensorpool_budget_soft_limit_bytes", gauge,
           "Bytes charged before which holders are asked for memory.", Family::limit,
           at("soft_bytes")),
    single("tensorpool_budget_limit_bytes", gauge, "Maximum of the bytes charged.", Family::limit,
           at("hard_bytes")),
};
inline constexpr Column columns[] = {
    {.title = "BUDGET", .show = Column::name, .width = 14},
    {"IN USE", Column::size, at("in_use_bytes")},
    {"HARD", Column::limit, at("hard_bytes")},
    {"SHARE", Column::part, at("in_use_bytes"), at("limit"), "",
     "What is in use of the hard limit, or else of the soft one."},
    {"", Column::bar, at("in_use_bytes"), at("limit")},
    {"SOFT", Column::limit, at("soft_bytes")},
    {"PEAK", Column::size, at("peak_bytes")},
    {"REFUSED", Column::count, at("refusals")},
    {"ASKED", Column::count, at("reclaims")},
    {"RECLAIMED", Column::size, at("reclaimed_bytes")},
};
inline constexpr RecordTable table = {
    .name = "budgets",
    .of = "budget",
    .label = "budget",
    .title = "budgets; the share is that of the hard limit, or else of the soft one",
    .parent = at("parent"),
    .shows_other = false,
    .fields = fields,
    .rules = rules,
    .derivations = derivations,
    .families = families,
    .columns = columns};

}  // namespace budgets

inline constexpr RecordKind BudgetRecord::layout = kind_of<BudgetRecord>(1024, budgets::table);

}  // namespace tensorpool::statistics
