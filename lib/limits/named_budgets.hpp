#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "limits/budget_file.hpp"

/// The budgets that the file in TENSORPOOL_BUDGETS sets for pools and scopes by their names. They
/// never end.
namespace tensorpool::limits {

enum class NamedBudgets : std::uint8_t { unread, none, some };

/// Acquire and release: the table is complete before it is found.
extern constinit std::atomic<NamedBudgets> named_budgets;

/// Reads the file, once. Bad lines are reported on stderr. REQUIRES: the caller holds no lock.
void read_named_budgets_slow() noexcept;
inline void read_named_budgets() noexcept {
    if (named_budgets.load(std::memory_order_acquire) == NamedBudgets::unread) [[unlikely]]
        read_named_budgets_slow();
}

/// Returns the budget for a pool or scope of this name; nullptr if the file has none, or was not
/// read yet.
detail::BudgetNode* find_named_budget(BudgetSubject subject, std::string_view name) noexcept;

}  // namespace tensorpool::limits
