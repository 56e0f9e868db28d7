#pragma once

#include <algorithm>
#include <cstddef>

#include "limits/budget_node.hpp"
#include "limits/commit_budget.hpp"

namespace tensorpool::limits {

/// Where one pool or arena charges the memory that it commits: its budget, if it has one, and then
/// the commit budget of the process. Thread-safe.
class CommitAccount {
public:
    explicit CommitAccount(CommitBudget& process, BudgetNode* budget = nullptr) noexcept
        : process_(process), budget_(budget) {
        if (budget_ != nullptr) budget_->hold();
    }
    CommitAccount(const CommitAccount&) = delete;
    CommitAccount& operator=(const CommitAccount&) = delete;
    ~CommitAccount() {
        if (budget_ != nullptr) budget_->let_go();
    }

    /// Does what CommitBudget::take does, within the limits of the budget as well. If the budget
    /// refuses, `request` says so.
    std::size_t take(std::size_t needed, std::size_t wanted, double fraction, std::size_t unit,
                     BudgetRequest& request) noexcept {
        if (budget_ == nullptr) [[likely]]
            return process_.take(needed, wanted, fraction, unit);
        const std::size_t charged = budget_->charge(needed, wanted, unit, request);
        if (charged == 0) return 0;
        const std::size_t taken = process_.take(needed, charged, fraction, unit);
        budget_->cancel(charged - taken);
        return taken;
    }
    /// Does what CommitBudget::take_and_get does, within the limits of the budget as well.
    template <class Get>
    std::size_t take_and_get(std::size_t needed, std::size_t wanted, double fraction,
                             std::size_t unit, BudgetRequest& request, Get get) noexcept {
        const std::size_t taken = take(needed, wanted, fraction, unit, request);
        if (taken == 0 || get(taken)) return taken;
        undo(taken - needed);
        if (taken != needed && get(needed)) return needed;
        undo(needed);
        return 0;
    }
    /// Gives back bytes that were taken but never used; see BudgetNode::cancel.
    void undo(std::size_t bytes) noexcept {
        process_.give_back(bytes);
        if (budget_ != nullptr) budget_->cancel(bytes);
    }
    void give_back(std::size_t bytes) noexcept {
        process_.give_back(bytes);
        if (budget_ != nullptr) budget_->refund(bytes);
    }
    /// Describes why `needed` more bytes could not be taken; see CommitBudget::refuse.
    base::Refusal refuse(std::size_t needed, bool system_refused,
                         const BudgetRequest& request) const noexcept {
        return request.is_refused() ? request.refusal() : process_.refuse(needed, system_refused);
    }
    BudgetNode* budget() const noexcept { return budget_; }

private:
    CommitBudget& process_;
    BudgetNode* const budget_;
};

}  // namespace tensorpool::limits
