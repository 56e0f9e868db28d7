#include "limits/budgets.hpp"

#include <new>

#include "base/never_destroyed.hpp"
#include "limits/named_budgets.hpp"
#include "limits/pressure_watch.hpp"

namespace tensorpool::limits {
namespace {

// Never destroyed: static budgets use it.
constinit base::NeverDestroyed<Budgets> the_budgets;

}  // namespace

Budgets& budgets() noexcept {
    return the_budgets.get();
}

// Forks do not overlap.
void lock_budgets() noexcept {
    budgets().is_fork_locked = budgets().were_used.load(std::memory_order_relaxed);
    if (!budgets().is_fork_locked) return;
    budgets().naming_mutex.lock();
    budgets().mutex.lock();
}

void unlock_budgets() noexcept {
    if (!budgets().is_fork_locked) return;
    budgets().mutex.unlock();
    budgets().naming_mutex.unlock();
}

// Without the lock, another thread may have been making the first budget, which the child does not
// have.
void budgets_in_child() noexcept {
    forget_pressure_looker();
    if (!budgets().is_fork_locked) {
        new (&budgets()) Budgets();
        named_budgets.store(NamedBudgets::unread, std::memory_order_relaxed);
        return;
    }
    for (BudgetNode* root = budgets().roots; root != nullptr; root = root->links().next) {
        forget_askers(*root);
    }
    unlock_budgets();
}

}  // namespace tensorpool::limits
