#pragma once

#include "base/never_destroyed.hpp"
#include "limits/budget_file.hpp"
#include "limits/budget_holders.hpp"
#include "statistics/segment/slab_list.hpp"

namespace tensorpool::limits {

/// All budgets of the process. The lock guards every member of every budget. It comes after the
/// locks of pools, arenas and the commit budget, and before the segment's.
struct Budgets {
    std::mutex naming_mutex;  // taken before `mutex`
    BudgetTable named;  // guarded by naming_mutex until named_budgets says that it is complete
    std::mutex mutex;
    std::atomic<bool> were_used = false;     // relaxed: set before a budget exists
    bool is_fork_locked = false;             // by the fork in progress
    std::atomic<unsigned> holder_count = 0;  // relaxed: a hint
    // Guarded by mutex:
    detail::BudgetNode* roots = nullptr;
    std::size_t registrations = 0;  // of holders, so far
    statistics::SlabList<detail::BudgetNode> free_nodes;
    statistics::SlabList<detail::HolderEntry> free_holders;
};

inline Budgets& budgets() noexcept {
    return base::the_only<Budgets>.get();
}

/// Takes the lock around a fork, if the process ever had a budget. ThreadSanitizer follows at most
/// 64 locks at a time, of which a fork with two pools takes almost all.
void lock_budgets() noexcept;
void unlock_budgets() noexcept;
/// Called in the child instead of `unlock_budgets`. Threads that were asking holders do not exist
/// there.
void budgets_in_child() noexcept;

}  // namespace tensorpool::limits

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
