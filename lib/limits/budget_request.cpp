#include "limits/budget_request.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include <tensorpool/detail/saturating.hpp>

#include "limits/budget_holders.hpp"
#include "limits/budgets.hpp"
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
    refused_by->counters().count_refusal();
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
void BudgetRequest::refuse(BudgetNode& charged, std::size_t needed, bool uses_reserved) noexcept {
    charged_ = &charged;
    needed_ = needed;
    uses_reserved_ = uses_reserved;
    by_soft_ = !may_pass_soft_ && charged.allowed(true, uses_reserved) >= needed;
    for (BudgetNode* node = charged_; node != nullptr; node = node->links().parent) {
        const BudgetCounters& counters = node->counters();
        if (node != charged_ || uses_reserved) needed -= std::min(needed, counters.reserved());
        if (node->room(!by_soft_) >= needed) continue;
        refused_by_ = node;
        // A limit may have been lowered below what is in use.
        missing_ = detail::sum(counters.in_use(), needed) - node->limit(!by_soft_);
        return;
    }
}

bool BudgetRequest::fits() noexcept {
    const bool fits = charged_->allowed(!by_soft_, uses_reserved_) >= needed_;
    has_fitted_ = has_fitted_ || fits;
    return fits;
}

}  // namespace tensorpool::limits
