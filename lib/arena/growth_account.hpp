#pragma once

#include "limits/commit_budget.hpp"

namespace tensorpool::arena {

/// A part of an account that the budget of a scope is charged for. The charge keeps the budget.
struct ScopeCharge {
    limits::BudgetNode* budget = nullptr;
    std::size_t begin = 0;  ///< the bytes that were taken before it
    std::size_t end = 0;
    ScopeCharge* before = nullptr;
    ScopeCharge* next_free = nullptr;
};

// Memory from malloc could be charged to the same scope, under an arena's mutex. Used under the
// segment's lock, which a fork takes.
inline constinit statistics::SlabList<ScopeCharge> scope_charges;

/// Where memory that grows and shrinks at one end is charged: the budget of its owner, or the one
/// of the BudgetScope in which it grows, until it shrinks again; and the commit budget. REQUIRES:
/// calls of functions that change it do not overlap.
class GrowthAccount {
public:
    explicit GrowthAccount(limits::BudgetNode* budget) noexcept
        : own_(limits::commit_budget(), budget) {}

    /// Does what CommitAccount::take_and_get does.
    template <class Get>
    std::size_t take_and_get(std::size_t needed, std::size_t wanted, double fraction,
                             std::size_t unit, limits::BudgetRequest& request, Get get) noexcept {
        limits::BudgetNode* const scope = own_.budget() == nullptr ? limits::scope_budget : nullptr;
        if (scope == nullptr) {
            const std::size_t taken =
                own_.take_and_get(needed, wanted, fraction, unit, request, get);
            taken_ += taken;
            return taken;
        }
        const bool goes_on = last_ != nullptr && last_->budget == scope && last_->end == taken_;
        ScopeCharge* const charge =
            goes_on ? last_ : statistics::segment().locked([] { return scope_charges.take(); });
        if (charge == nullptr) return 0;
        limits::CommitAccount account(limits::commit_budget(), scope);
        const std::size_t taken =
            account.take_and_get(needed, wanted, fraction, unit, request, get);
        if (!goes_on && taken == 0) {
            give_back_record(*charge);
        } else if (!goes_on) {
            *charge = {.budget = scope, .begin = taken_, .before = last_};
            last_ = charge;
        }
        taken_ += taken;
        if (taken != 0) charge->end = taken_;
        return taken;
    }
    /// Gives back what was taken last.
    void give_back(std::size_t bytes) noexcept {
        own_.give_back(bytes);
        taken_ -= bytes;
        while (last_ != nullptr && last_->end > taken_) {
            ScopeCharge& charge = *last_;
            const std::size_t kept = std::max(charge.begin, taken_);
            limits::BudgetNode& budget = *charge.budget;
            const std::size_t refunded = std::exchange(charge.end, kept) - kept;
            if (kept == charge.begin) {
                last_ = charge.before;
                give_back_record(charge);
            }
            budget.refund(refunded);
        }
    }
    base::Refusal refuse(std::size_t needed, bool system_refused,
                         const limits::BudgetRequest& request) const noexcept {
        return own_.refuse(needed, system_refused, request);
    }

private:
    static void give_back_record(ScopeCharge& charge) noexcept {
        statistics::segment().locked([&charge] { scope_charges.give_back(charge); });
    }

    limits::CommitAccount own_;
    std::size_t taken_ = 0;
    ScopeCharge* last_ = nullptr;
};

}  // namespace tensorpool::arena
