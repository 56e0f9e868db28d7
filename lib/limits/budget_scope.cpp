#include <atomic>

#include <tensorpool/budget.hpp>

#include "limits/scope_budget.hpp"
#include "statistics/scopes/counters_of_thread.hpp"

namespace tensorpool {
namespace limits {
namespace {

constinit std::atomic<void (*)() noexcept> scope_changed = nullptr;  // relaxed: guards nothing

}  // namespace

constinit thread_local BudgetNode* scope_budget TENSORPOOL_INITIAL_EXEC = nullptr;

void change_scope(BudgetNode* now) noexcept {
    scope_budget = now;
    if (const auto changed = scope_changed.load(std::memory_order_relaxed)) changed();
}

void set_scope_hook(void (*changed)() noexcept) noexcept {
    scope_changed.store(changed, std::memory_order_relaxed);
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
