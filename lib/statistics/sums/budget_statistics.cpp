#include "statistics/sums/budget_statistics.hpp"

#include <algorithm>

#include "statistics/segment/name.hpp"
#include "statistics/sums/counter_words.hpp"

namespace tensorpool::statistics {

BudgetStatistics statistics_of(const BudgetRecord& budget) noexcept {
    BudgetStatistics statistics;
    statistics.id = read(budget.id);
    statistics.parent = read(budget.parent);
    load_name(budget.name, statistics.name);
    add_counters(statistics, budget.totals, Reading::first);
    add_counters(statistics, budget.totals, Reading::second);
    // Another process writes meanwhile.
    statistics.peak_bytes = std::max(statistics.peak_bytes, statistics.in_use_bytes);
    return statistics;
}

std::vector<BudgetStatistics> budgets_in(const SegmentImage& image) {
    std::vector<BudgetStatistics> budgets;
    // The first record sums up budgets without one.
    for (const BudgetRecord& record : image.records<BudgetRecord>()) {
        if (&record == image.records<BudgetRecord>().data() || read(record.id) == 0) continue;
        budgets.push_back(statistics_of(record));
    }
    std::ranges::sort(budgets, {}, &BudgetStatistics::id);
    return budgets;
}

}  // namespace tensorpool::statistics
