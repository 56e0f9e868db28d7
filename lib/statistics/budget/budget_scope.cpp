#include <atomic>

#include <tensorpool/budget.hpp>

#include "statistics/budget/scope_budget.hpp"

namespace tensorpool {
namespace statistics {
namespace {

// Release and acquire: the hooks are set before they are found.
constinit std::atomic<const BudgetHooks*> the_hooks = nullptr;

}  // namespace

constinit thread_local BudgetNode* scope_budget TENSORPOOL_INITIAL_EXEC = nullptr;

void change_scope(BudgetNode* now) noexcept {
    scope_budget = now;
    const BudgetHooks* const hooks = the_hooks.load(std::memory_order_acquire);
    if (hooks != nullptr) hooks->scope_changed();
}

void set_budget_hooks(const BudgetHooks& hooks) noexcept {
    the_hooks.store(&hooks, std::memory_order_release);
}

std::size_t give_free_memory(BudgetNode& budget, std::size_t bytes) noexcept {
    const BudgetHooks* const hooks = the_hooks.load(std::memory_order_acquire);
    return hooks == nullptr ? 0 : hooks->give_free_memory(budget, bytes);
}

}  // namespace statistics

BudgetScope::BudgetScope(Budget& budget) noexcept
    : node_(budget.node_), outer_(statistics::scope_budget) {
    node_->hold();
    statistics::change_scope(node_);
}

BudgetScope::~BudgetScope() {
    statistics::change_scope(outer_);
    node_->let_go();
}

}  // namespace tensorpool
