
#include <chrono>
#include <cmath>

#include "events/timeline.hpp"
#include "limits/budget_node.hpp"
#include "limits/commit_budget.hpp"
#include "limits/ladder.hpp"

namespace tensorpool::limits {
namespace {

// Its address identifies the thread. True while the thread is inside a holder.
constinit thread_local bool inside_holder TENSORPOOL_INITIAL_EXEC = false;

// While another thread asks a holder, this one waits in steps of this length.
constexpr std::chrono::microseconds wait_step{50};

void count_holders(BudgetNode* node, int more) noexcept {
    for (; node != nullptr; node = node->parent) {
        node->holders.below += static_cast<unsigned>(more);
    }
    budgets().holder_count.fetch_add(static_cast<unsigned>(more), std::memory_order_relaxed);
}

std::size_t ask(BudgetNode& budget, HolderEntry& entry, std::size_t bytes,
                std::unique_lock<std::mutex>& lock) noexcept {
    entry.asked_by = &inside_holder;
    budget.counters.count(&statistics::BudgetTotals::reclaims);
    MemoryHolder& holder = *entry.holder;
    lock.unlock();
    inside_holder = true;
    const std::size_t available = holder.available();
    const std::size_t given = available == 0 ? 0 : holder.give(std::min(bytes, available));
    inside_holder = false;
    lock.lock();
    entry.asked_by = nullptr;
    if (entry.is_removed) budgets().free_holders.give_back(entry);
    return given;
}

void wait_a_step(std::unique_lock<std::mutex>& lock) noexcept {
    lock.unlock();
    std::this_thread::sleep_for(wait_step);
    lock.lock();
}

}  // namespace

bool is_inside_holder() noexcept {
    return inside_holder;
}

HolderEntry* add_holder(BudgetNode& budget, MemoryHolder& holder,
                        const HolderOptions& options) noexcept {
    const std::lock_guard guard(budgets().mutex);
    HolderEntry* const entry = budgets().free_holders.take();
    if (entry == nullptr) return nullptr;
    *entry = {.holder = &holder,
              .node = &budget,
              // Not a number stands last, so that the order is total.
              .position = {.priority = options.priority,
                           .cost_per_byte = std::isnan(options.cost_per_byte)
                                                ? std::numeric_limits<double>::infinity()
                                                : options.cost_per_byte,
                           .number = ++budgets().registrations},
              .next = budget.holders.first};
    std::snprintf(entry->name, sizeof entry->name, "%s", options.name.c_str());
    budget.holders.first = entry;
    budget.hold();
    count_holders(&budget, 1);
    return entry;
}

void remove_holder(HolderEntry& entry) noexcept {
    std::unique_lock lock(budgets().mutex);
    const bool by_itself = entry.asked_by == &inside_holder;
    while (entry.asked_by != nullptr && !by_itself) wait_a_step(lock);
    BudgetNode& budget = *entry.node;
    HolderEntry** link = &budget.holders.first;
    while (*link != &entry) link = &(*link)->next;
    *link = entry.next;
    count_holders(&budget, -1);
    budget.let_go_locked();
    if (by_itself) {
        entry.is_removed = true;  // `ask` gives it back
    } else {
        budgets().free_holders.give_back(entry);
    }
}

// A holder that is asked by another thread is waited for: what it gives may suffice. That thread is
// inside the holder, so it waits for no budget, and the wait ends.
std::size_t ask_holders(BudgetNode& budget, std::size_t bytes, BudgetRequest* request) noexcept {
    if (inside_holder) return 0;
    std::unique_lock lock(budgets().mutex);
    // Each request goes through the order by itself: what another request asked of a holder says
    // nothing about what the holder can still give.
    HolderPosition asked;
    const HolderPosition* after = nullptr;
    budget.hold();
    std::size_t given = 0;
    while (given < bytes && (request == nullptr || !request->fits())) {
        HolderEntry* const entry = next_holder(budget, after);
        if (entry == nullptr) break;
        if (entry->asked_by != nullptr) {
            wait_a_step(lock);
            continue;
        }
        asked = entry->position;
        after = &asked;
        given += ask(budget, *entry, bytes - given, lock);
    }
    budget.counters.count(&statistics::BudgetTotals::reclaimed_bytes, given);
    budget.let_go_locked();
    return given;
}

HolderEntry* next_holder(const BudgetNode& budget, const HolderPosition* after) noexcept {
    HolderEntry* next = nullptr;
    const auto consider = [&](HolderEntry* entry) {
        if (entry == nullptr) return;
        if (after != nullptr && entry->position <= *after) return;
        if (next == nullptr || entry->position < next->position) next = entry;
    };
    for (HolderEntry* entry = budget.holders.first; entry != nullptr; entry = entry->next)
        consider(entry);
    for (const BudgetNode* child = budget.children; child != nullptr; child = child->next) {
        if (child->holders.below != 0) consider(next_holder(*child, after));
    }
    return next;
}

void forget_askers(BudgetNode& budget) noexcept {
    for (HolderEntry* entry = budget.holders.first; entry != nullptr; entry = entry->next) {
        if (entry->asked_by != &inside_holder) entry->asked_by = nullptr;
    }
    for (BudgetNode* child = budget.children; child != nullptr; child = child->next) {
        forget_askers(*child);
    }
}

namespace {

std::size_t give_of_holders(Lack& lack) noexcept {
    return lack.budget == nullptr ? 0 : ask_holders(*lack.budget, lack.bytes, lack.request);
}

constexpr Rung holders{"holders of budgets", give_of_holders};
constinit Ladder the_ladder(holders);

}  // namespace

Ladder& ladder() noexcept {
    return the_ladder;
}

bool Ladder::gives_for(const base::Refusal& refusal) const noexcept {
    const LimitKind limit = events::limit_kind(refusal);
    if (limit != LimitKind::memory && limit != LimitKind::address_space) return false;
    // An arena reserves its addresses once.
    if (limit == LimitKind::address_space && refusal.needed_limit != 0) return false;
    Lack lack;
    return refusal.missing <= commit_budget().committed() && climb(lack) != 0;
}

std::size_t Ladder::climb(Lack& lack) const noexcept {
    std::size_t given = 0;
    for (const std::atomic<const Rung*>& position : rungs_) {
        if (lack.bytes == 0) break;
        const Rung* const rung = position.load(std::memory_order_acquire);
        if (rung == nullptr) continue;
        const std::size_t now = rung->give(lack);
        given += now;
        lack.bytes -= std::min(lack.bytes, now);
    }
    return given;
}

}  // namespace tensorpool::limits
