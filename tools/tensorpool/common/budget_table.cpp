#include "common/budget_table.hpp"

#include <algorithm>
#include <cmath>

#include "common/cells.hpp"

namespace tensorpool::command {
namespace {

constexpr std::size_t bar_columns = 10;
// Deeper budgets are not indented further, so that their names remain visible.
constexpr std::size_t most_steps = 8;

std::uint64_t limit_of(const BudgetStatistics& budget) {
    return budget.hard_bytes != 0 ? budget.hard_bytes : budget.soft_bytes;
}

/// A bar of the share in use, such as "[####      ]". Empty without a limit.
Cell bar_cell(const BudgetStatistics& budget) {
    const std::uint64_t limit = limit_of(budget);
    if (limit == 0) return {"", 0};
    const double share =
        std::min(1.0, static_cast<double>(budget.in_use_bytes) / static_cast<double>(limit));
    const auto filled = static_cast<std::size_t>(std::lround(share * bar_columns));
    return {'[' + std::string(filled, '#') + std::string(bar_columns - filled, ' ') + ']', share};
}

}  // namespace

Table budget_table(const std::vector<BudgetStatistics>& budgets, Sizes sizes) {
    Table table;
    table.columns = {text_column("BUDGET", 14),
                     size_column("IN USE"),
                     size_column("HARD"),
                     part_column("SHARE"),
                     {"", Side::left, bar_columns + 2},
                     size_column("SOFT"),
                     size_column("PEAK"),
                     count_column("REFUSED"),
                     count_column("ASKED"),
                     size_column("RECLAIMED")};
    for (const BudgetPosition& at : budget_tree(budgets)) {
        const BudgetStatistics& budget = *at.budget;
        const std::string indent(2 * std::min(at.depth, most_steps), ' ');
        table.rows.push_back(
            {text_cell(indent + budget.name), size_cell(budget.in_use_bytes, sizes),
             limit_cell(budget.hard_bytes, sizes), part_cell(budget.in_use_bytes, limit_of(budget)),
             bar_cell(budget), limit_cell(budget.soft_bytes, sizes),
             size_cell(budget.peak_bytes, sizes), count_cell(budget.refusals),
             count_cell(budget.reclaims), size_cell(budget.reclaimed_bytes, sizes)});
        table.keys.push_back(std::to_string(budget.id));
    }
    return table;
}

}  // namespace tensorpool::command
