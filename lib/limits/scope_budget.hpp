#pragma once

#include "limits/budget_node.hpp"

namespace tensorpool::limits {

/// The budget of the innermost BudgetScope of the calling thread, or nullptr.
extern constinit thread_local BudgetNode* scope_budget TENSORPOOL_INITIAL_EXEC;

/// Makes `now` the budget of the calling thread, or none if it is nullptr. REQUIRES: the caller
/// holds no lock.
void change_scope(BudgetNode* now) noexcept;

/// Sets what is called after `scope_budget` changed, always the same, before the first scope
/// begins.
void set_scope_hook(void (*scope_changed)() noexcept) noexcept;

}  // namespace tensorpool::limits
