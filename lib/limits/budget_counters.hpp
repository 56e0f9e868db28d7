#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <tensorpool/budget.hpp>

#include "limits/budget_table.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::limits {

/// The limits of one budget, what is charged to it, and how much of that reservations have set
/// aside. The segment shows it from `open` to `end`. Afterwards there are no limits, but what was
/// charged stays so until it is refunded. Guarded by the lock of all budgets.
class BudgetCounters {
public:
    /// Returns false if there is no memory.
    bool open(std::string_view name, const BudgetCounters* parent, BudgetLimits limits) noexcept;
    /// Ends the limits. REQUIRES: all reservations have ended.
    void end() noexcept;
    bool is_ended() const noexcept { return !record_; }

    std::size_t in_use() const noexcept { return value_of(totals().in_use_bytes); }
    /// The bytes that reservations set aside and no charge has used. They are in use.
    std::size_t reserved() const noexcept { return value_of(totals().reserved_bytes); }
    /// Returns the limit for requests that may pass the soft limit, or that may not; SIZE_MAX if
    /// there is none.
    std::size_t limit(bool may_pass_soft) const noexcept;
    void set_limits(BudgetLimits limits) noexcept;

    void charge(std::size_t bytes) noexcept;
    void refund(std::size_t bytes) noexcept;
    /// Sets aside bytes that were charged for a reservation.
    void set_aside(std::size_t bytes) noexcept;
    /// Ends reservations of `bytes` bytes, or all if they are less. Returns the bytes of them that
    /// no charge has used, which are to be refunded.
    std::size_t end_reservation(std::size_t bytes) noexcept;
    /// Uses what is set aside for a charge. Returns the bytes that remain to be charged.
    std::size_t use_reserved(std::size_t bytes) noexcept;
    /// Undoes `use_reserved` as far as living reservations lack bytes. Returns the bytes that
    /// remain to be refunded.
    std::size_t restore_reserved(std::size_t bytes) noexcept;

    void count_refusal() noexcept;
    /// Counts that a holder was asked, and what holders gave.
    void count_reclaim() noexcept;
    void count_reclaimed(std::size_t bytes) noexcept;
    BudgetStatistics statistics() const noexcept;

private:
    static std::size_t value_of(const detail::Counter& counter) noexcept {
        return counter.load(std::memory_order_relaxed);
    }
    const statistics::BudgetTotals& totals() const noexcept {
        return record_ ? (*record_)->totals : ended_;
    }
    statistics::BudgetTotals& totals() noexcept { return record_ ? (*record_)->totals : ended_; }

    std::size_t living_reservations_ = 0;  // bytes, with those that requests have used
    std::optional<statistics::OwnedRecord<statistics::BudgetRecord>> record_;
    statistics::BudgetTotals ended_;  // the charge after the end
};

}  // namespace tensorpool::limits
