#pragma once

#include <compare>

#include <tensorpool/budget.hpp>

#include "limits/budget_request.hpp"

namespace tensorpool::detail {

/// Where a holder stands in the order in which holders are asked.
struct HolderPosition {
    int priority = 0;
    double cost_per_byte = 0;
    std::size_t number = 0;  // of the registration; no other holder has it

    auto operator<=>(const HolderPosition&) const = default;
};

/// One registered holder. Guarded by the lock of all budgets, except what is set once.
struct HolderEntry {
    MemoryHolder* holder = nullptr;
    BudgetNode* node = nullptr;
    char name[48] = {};
    HolderPosition position;
    HolderEntry* next = nullptr;     // of its budget
    const void* asked_by = nullptr;  // the thread that asks it now
    bool is_removed = false;         // while it was asked, by the thread that asked
    HolderEntry* next_free = nullptr;
};

}  // namespace tensorpool::detail

namespace tensorpool::limits {

using detail::HolderEntry;
using detail::HolderPosition;

/// The holders of one budget. Guarded by the lock of all budgets.
struct HolderList {
    HolderEntry* first = nullptr;
    unsigned below = 0;  // the number of its own holders and of those of all budgets below it
};

/// Whether the calling thread is inside a holder that a budget asks.
bool is_inside_holder() noexcept;

/// Returns nullptr if there is no memory.
HolderEntry* add_holder(BudgetNode& budget, MemoryHolder& holder,
                        const HolderOptions& options) noexcept;
void remove_holder(HolderEntry& entry) noexcept;

/// Asks the holders of a budget and of those below it, in their order, until they have given
/// `bytes`, or until `request` would fit if it is not nullptr. Returns what they gave. The caller
/// holds no lock. Returns 0 if the calling thread is inside a holder.
std::size_t ask_holders(BudgetNode& budget, std::size_t bytes,
                        BudgetRequest* request = nullptr) noexcept;

/// Returns the first holder of a budget and of those below it, or the first one behind a position;
/// nullptr if there is none. REQUIRES: the lock of all budgets is held.
HolderEntry* next_holder(const BudgetNode& budget, const HolderPosition* after) noexcept;

/// Called in the child of a fork: other threads that were asking holders of this budget, or of one
/// below it, do not exist there. REQUIRES: the lock of all budgets is held.
void forget_askers(BudgetNode& budget) noexcept;

}  // namespace tensorpool::limits
