#pragma once

#include <optional>

#include <tensorpool/budget.hpp>

#include "limits/budget_table.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::limits {

/// The limits of one budget and what is charged to it. The segment shows it from `open` to `end`.
/// Afterwards there are no limits, but what was charged stays so until it is refunded. Guarded by
/// the lock of all budgets.
class BudgetCounters {
public:
    /// Returns false if there is no memory.
    bool open(std::string_view name, const BudgetCounters* parent, BudgetLimits limits) noexcept;
    /// Ends the limits.
    void end() noexcept;
    bool is_ended() const noexcept { return !record_; }

    std::size_t in_use() const noexcept { return value_of(totals().in_use_bytes); }
    /// Returns the limit for requests that may pass the soft limit, or that may not; SIZE_MAX if
    /// there is none.
    std::size_t limit(bool may_pass_soft) const noexcept;
    void set_limits(BudgetLimits limits) noexcept;

    void charge(std::size_t bytes) noexcept {
        detail::add(totals().in_use_bytes, bytes);
        base::raise_to(totals().peak_bytes, in_use());
    }
    void refund(std::size_t bytes) noexcept {
        totals().in_use_bytes.store(in_use() - bytes, std::memory_order_relaxed);
    }

    void count_refusal() noexcept {
        if (!is_ended()) detail::add(totals().refusals, 1);
    }
    /// Counts that a holder was asked, and what holders gave.
    void count_reclaim() noexcept {
        if (!is_ended()) detail::add(totals().reclaims, 1);
    }
    void count_reclaimed(std::size_t bytes) noexcept {
        if (!is_ended()) detail::add(totals().reclaimed_bytes, bytes);
    }
    BudgetStatistics statistics() const noexcept;

private:
    static std::size_t value_of(const detail::Counter& counter) noexcept {
        return counter.load(std::memory_order_relaxed);
    }
    const statistics::BudgetTotals& totals() const noexcept {
        return record_ ? (*record_)->totals : ended_;
    }
    statistics::BudgetTotals& totals() noexcept { return record_ ? (*record_)->totals : ended_; }

    std::optional<statistics::OwnedRecord<statistics::BudgetRecord>> record_;
    statistics::BudgetTotals ended_;  // the charge after the end
};

}  // namespace tensorpool::limits
