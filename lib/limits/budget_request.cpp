#include "limits/budget_request.hpp"

#include <cinttypes>
#include <functional>

#include <tensorpool/detail/saturating.hpp>

#include "limits/budget_node.hpp"
#include "limits/ladder.hpp"

namespace tensorpool::limits {

bool BudgetRequest::may_retry() noexcept {
    if (refused_by_ == nullptr) return false;
    BudgetNode* const refused_by = std::exchange(refused_by_, nullptr);
    has_fitted_ = false;
    // Nothing is given for a request that exceeds the limit even if all memory were.
    const bool may_fit = by_soft_ || missing_ <= refused_by->in_use();
    Lack lack{.budget = refused_by, .bytes = missing_, .request = this};
    const std::size_t given = may_fit ? ladder().climb(lack) : 0;
    reclaimed_ += given;
    if (by_soft_) {
        may_pass_soft_ = true;
        return true;
    }
    // What holders gave to another request, or a refund, may be enough. If it was, but another
    // request was faster, holders may have more.
    const std::lock_guard guard(budgets().mutex);
    if (given != 0 || has_fitted_ || fits()) return true;
    refused_by_ = refused_by;
    refused_by->counters.count(&statistics::BudgetTotals::refusals);
    return false;
}

base::Refusal BudgetRequest::refusal() const noexcept {
    const BudgetStatistics budget = refused_by_->statistics();
    base::Refusal refusal = {"the budget's hard limit", budget.hard_bytes};
    refusal.needed_limit = detail::sum(budget.hard_bytes, missing_);
    return refusal;
}

bool BudgetRequest::may_pass_soft() const noexcept {
    return may_pass_soft_ || is_inside_holder();
}

// Finds the first level that does not allow the charge.
void BudgetRequest::refuse(BudgetNode& charged, std::size_t needed) noexcept {
    charged_ = &charged;
    needed_ = needed;
    by_soft_ = !may_pass_soft_ && charged.allowed(true) >= needed;
    for (BudgetNode* node = charged_; node != nullptr; node = node->parent) {
        if (node->room(!by_soft_) >= needed) continue;
        refused_by_ = node;
        // A limit may have been lowered below what is in use.
        missing_ = detail::sum(node->counters.in_use(), needed) - node->limit(!by_soft_);
        return;
    }
}

bool BudgetRequest::fits() noexcept {
    const bool fits = charged_->allowed(!by_soft_) >= needed_;
    has_fitted_ = has_fitted_ || fits;
    return fits;
}

namespace {

using base::BytesText;

constexpr std::size_t max_children = 3;
constexpr std::size_t max_holders = 3;

// The largest children, by what is charged to them.
void describe_level(const BudgetNode& node, base::FixedText& text, bool has_refused) noexcept {
    const BudgetStatistics now = node.counters.statistics();
    text.add("\n  %s'%.47s': ", has_refused ? "refused by " : "", now.name);
    text.add("%s in use of ", BytesText(now.in_use_bytes).c_str());
    text.add("%s", now.hard_bytes == 0 ? "no limit" : BytesText(now.hard_bytes).c_str());
    std::array<const BudgetNode*, max_children> largest = {};
    const auto charge = [](const BudgetNode* child) {
        return child == nullptr ? 0 : child->counters.in_use();
    };
    std::size_t in_children = 0;
    for (const BudgetNode* child = node.children; child != nullptr; child = child->next) {
        in_children += charge(child);
        if (child->counters.is_ended() || charge(child) <= charge(largest.back())) continue;
        largest.back() = child;
        std::ranges::stable_sort(largest, std::greater<>(), charge);
    }
    for (const BudgetNode* child : largest) {
        if (child == nullptr) break;
        text.add("; '%.47s' %s", child->counters.statistics().name,
                 BytesText(charge(child)).c_str());
    }
    if (in_children != 0) {
        const std::size_t own = now.in_use_bytes - std::min(now.in_use_bytes, in_children);
        text.add("; itself %s", BytesText(own).c_str());
    }
}

// In the order in which they are asked.
void list_holders(const BudgetNode& node, base::FixedText& text) noexcept {
    const HolderEntry* entry = next_holder(node, nullptr);
    for (std::size_t i = 0; entry != nullptr && i != max_holders; ++i) {
        text.add("%s'%s'", i == 0 ? ": " : ", ", entry->name);
        entry = next_holder(node, &entry->position);
    }
    if (entry != nullptr) text.add(", ...");
}

}  // namespace

void BudgetRequest::describe(base::FixedText& text) const noexcept {
    if (refused_by_ == nullptr) return;
    const std::lock_guard guard(budgets().mutex);
    text.add("\n  holders gave %s", BytesText(reclaimed_).c_str());
    list_holders(*refused_by_, text);
    // First, so that a long text is not cut off before it.
    if (!refused_by_->counters.is_ended()) describe_level(*refused_by_, text, true);
    for (const BudgetNode* node = charged_; node != nullptr; node = node->parent) {
        if (!node->counters.is_ended() && node != refused_by_) describe_level(*node, text, false);
    }
}

}  // namespace tensorpool::limits
