// What a refused request reports about the budgets that it met.

#include <algorithm>
#include <array>
#include <cinttypes>

#include <tensorpool/detail/saturating.hpp>

#include "limits/budgets.hpp"
#include "statistics/sums/budget_statistics.hpp"

namespace tensorpool::detail {
namespace {

using base::BytesText;
using limits::budgets;

constexpr std::size_t max_children = 3;
constexpr std::size_t max_holders = 3;

}  // namespace

// The largest children, by what is charged to them.
void BudgetNode::describe_level(base::FixedText& text, bool has_refused) const noexcept {
    const BudgetStatistics now = statistics::statistics_of(**record_);
    text.add("\n  %s'%.47s': ", has_refused ? "refused by " : "", now.name);
    text.add("%s in use of ", BytesText(now.in_use_bytes).c_str());
    text.add("%s", now.hard_bytes == 0 ? "no limit" : BytesText(now.hard_bytes).c_str());
    if (now.reserved_bytes != 0) text.add(", reserved %s", BytesText(now.reserved_bytes).c_str());
    std::array<const BudgetNode*, max_children> largest = {};
    const auto charge = [](const BudgetNode* node) {
        return node == nullptr ? 0 : node->totals().in_use_bytes.load(std::memory_order_relaxed);
    };
    std::size_t in_children = 0;
    for (const BudgetNode* child = children_; child != nullptr; child = child->next_) {
        in_children += charge(child);
        if (child->is_ended_ || charge(child) <= charge(largest.back())) continue;
        largest.back() = child;
        std::ranges::stable_sort(largest, std::greater<>(), charge);
    }
    for (const BudgetNode* child : largest) {
        if (child == nullptr) break;
        text.add("; '%.47s' %s", statistics::statistics_of(**child->record_).name,
                 BytesText(charge(child)).c_str());
    }
    if (in_children != 0) {
        const std::size_t own = now.in_use_bytes - std::min(now.in_use_bytes, in_children);
        text.add("; itself %s", BytesText(own).c_str());
    }
}

// In the order in which they are asked.
void BudgetNode::list_holders(base::FixedText& text) const noexcept {
    const HolderEntry* entry = next_holder(nullptr);
    for (std::size_t i = 0; entry != nullptr && i != max_holders; ++i) {
        text.add("%s'%s'", i == 0 ? ": " : ", ", entry->name);
        entry = next_holder(&entry->position);
    }
    if (entry != nullptr) text.add(", ...");
}

}  // namespace tensorpool::detail

namespace tensorpool::limits {

base::Refusal BudgetRequest::refusal() const noexcept {
    const BudgetStatistics budget = refused_by_->statistics();
    base::Refusal refusal = {"the budget's hard limit", budget.hard_bytes};
    refusal.needed_limit = detail::sum(budget.hard_bytes, missing_);
    return refusal;
}

void BudgetRequest::describe(base::FixedText& text) const noexcept {
    if (refused_by_ == nullptr) return;
    const std::lock_guard guard(budgets().mutex);
    text.add("\n  holders gave %s", base::BytesText(reclaimed_).c_str());
    refused_by_->list_holders(text);
    // First, so that a long text is not cut off before it.
    if (!refused_by_->is_ended_) refused_by_->describe_level(text, true);
    for (const BudgetNode* node = charged_; node != nullptr; node = node->parent_) {
        if (!node->is_ended_ && node != refused_by_) node->describe_level(text, false);
    }
}

}  // namespace tensorpool::limits
