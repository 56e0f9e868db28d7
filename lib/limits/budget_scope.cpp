#include <atomic>

#include <tensorpool/budget.hpp>

#include "limits/scope_budget.hpp"
#include "statistics/scopes/counters_of_thread.hpp"

namespace tensorpool {
namespace limits {
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

}  // namespace limits

void statistics::forget_open_scopes() noexcept {
    limits::scope_budget = nullptr;
}

BudgetScope::BudgetScope(Budget& budget) noexcept
    : node_(budget.node_), outer_(limits::scope_budget) {
    node_->hold();
    limits::change_scope(node_);
}

BudgetScope::~BudgetScope() {
    limits::change_scope(outer_);
    node_->let_go();
}

}  // namespace tensorpool
