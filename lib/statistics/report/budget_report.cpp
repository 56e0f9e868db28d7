#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/budget_statistics.hpp>

#include "statistics/metrics/budget_metrics.hpp"
#include "statistics/report/report_parts.hpp"

namespace tensorpool {

std::string to_json(const BudgetStatistics& budget) {
    return "{\"name\":" + statistics::quoted(budget.name) + ',' + statistics::members(budget) + '}';
}

// A parent is older than its children, so its number is lower. Whatever an overwritten segment
// contains, no budget is therefore below itself.
std::vector<BudgetPosition> budget_tree(const std::vector<BudgetStatistics>& budgets) {
    constexpr std::size_t none = SIZE_MAX;
    // Of each budget, the first child and the next budget with the same parent.
    std::vector<std::pair<std::size_t, std::size_t>> links(budgets.size(), {none, none});
    std::size_t first_root = none;
    for (std::size_t index = budgets.size(); index-- != 0;) {
        const BudgetStatistics& budget = budgets[index];
        const auto found =
            std::ranges::lower_bound(budgets, budget.parent, {}, &BudgetStatistics::id);
        const auto above = static_cast<std::size_t>(found - budgets.begin());
        const bool has_parent =
            budget.parent < budget.id && above < index && budgets[above].id == budget.parent;
        std::size_t& list = has_parent ? links[above].first : first_root;
        links[index].second = std::exchange(list, index);
    }
    std::vector<BudgetPosition> tree;
    tree.reserve(budgets.size());
    std::vector<std::size_t> path;  // of budgets whose next one is due
    std::size_t next = first_root;
    while (next != none || !path.empty()) {
        if (next == none) {
            next = links[path.back()].second;
            path.pop_back();
            continue;
        }
        tree.push_back({&budgets[next], path.size()});
        path.push_back(next);
        next = links[next].first;
    }
    return tree;
}

}  // namespace tensorpool
