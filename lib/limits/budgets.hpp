#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "limits/budget_file.hpp"
#include "limits/budget_node.hpp"
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

Budgets& budgets() noexcept;

/// Takes the lock around a fork, if the process ever had a budget. ThreadSanitizer follows at most
/// 64 locks at a time, of which a fork with two pools takes almost all.
void lock_budgets() noexcept;
void unlock_budgets() noexcept;
/// Called in the child instead of `unlock_budgets`. Threads that were asking holders do not exist
/// there.
void budgets_in_child() noexcept;

}  // namespace tensorpool::limits
