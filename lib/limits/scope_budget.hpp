#pragma once

#include "limits/budget_node.hpp"

namespace tensorpool::limits {

/// The budget of the innermost BudgetScope of the calling thread, or nullptr.
extern constinit thread_local BudgetNode* scope_budget TENSORPOOL_INITIAL_EXEC;

/// Makes `now` the budget of the calling thread, or none if it is nullptr. REQUIRES: the caller
/// holds no lock.
void change_scope(BudgetNode* now) noexcept;

/// What the layers above do for budgets. Set once, before the first scope begins.
struct BudgetHooks {
    /// Called after `scope_budget` changed.
    void (*scope_changed)() noexcept;
    /// Gives back free memory of all pools that charge `budget` or one below it, at least `bytes`
    /// bytes if there is so much. Returns the bytes by which charges fell. The caller holds no
    /// lock.
    std::size_t (*give_free_memory)(BudgetNode& budget, std::size_t bytes) noexcept;
};
void set_budget_hooks(const BudgetHooks& hooks) noexcept;

}  // namespace tensorpool::limits
