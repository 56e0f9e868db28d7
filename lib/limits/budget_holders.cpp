// Which holders are asked, in which order, and how.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>
#include <new>
#include <thread>

#include "base/never_destroyed.hpp"
#include "limits/budgets.hpp"
#include "limits/named_budgets.hpp"
#include "limits/pressure_watch.hpp"

namespace tensorpool {
namespace limits {
namespace {

// Never destroyed: static budgets use it.
constinit base::NeverDestroyed<Budgets> the_budgets;

// Its address identifies the thread. True while the thread is inside a holder.
constinit thread_local bool inside_holder TENSORPOOL_INITIAL_EXEC = false;

// While another thread asks a holder, this one waits in steps of this length.
constexpr std::chrono::microseconds wait_step{50};

}  // namespace

Budgets& budgets() noexcept {
    return the_budgets.get();
}

bool is_inside_holder() noexcept {
    return inside_holder;
}

}  // namespace limits

namespace detail {

using limits::budgets;

HolderEntry* BudgetNode::add_holder(MemoryHolder& holder, const HolderOptions& options) noexcept {
    const std::lock_guard guard(budgets().mutex);
    HolderEntry* const entry = budgets().free_holders.take();
    if (entry == nullptr) return nullptr;
    *entry = {.holder = &holder,
              .node = this,
              // Not a number stands last, so that the order is total.
              .position = {.priority = options.priority,
                           .cost_per_byte = std::isnan(options.cost_per_byte)
                                                ? std::numeric_limits<double>::infinity()
                                                : options.cost_per_byte,
                           .number = ++budgets().registrations},
              .next = holders_};
    std::snprintf(entry->name, sizeof entry->name, "%s", options.name.c_str());
    holders_ = entry;
    ++holds_;
    count_holders(1);
    budgets().holder_count.fetch_add(1, std::memory_order_relaxed);
    return entry;
}

void BudgetNode::remove_holder(HolderEntry& entry) noexcept {
    std::unique_lock lock(budgets().mutex);
    const bool by_itself = entry.asked_by == &limits::inside_holder;
    while (entry.asked_by != nullptr && !by_itself) {
        lock.unlock();
        std::this_thread::sleep_for(limits::wait_step);
        lock.lock();
    }
    BudgetNode& node = *entry.node;
    HolderEntry** link = &node.holders_;
    while (*link != &entry) link = &(*link)->next;
    *link = entry.next;
    node.count_holders(-1);
    budgets().holder_count.fetch_sub(1, std::memory_order_relaxed);
    --node.holds_;
    drop_unused(&node);
    if (by_itself) {
        entry.is_removed = true;  // `ask` gives it back
    } else {
        budgets().free_holders.give_back(entry);
    }
}

void BudgetNode::count_holders(int more) noexcept {
    for (BudgetNode* node = this; node != nullptr; node = node->parent_) {
        node->holders_below_ += static_cast<unsigned>(more);
    }
}

// A holder that is asked by another thread is waited for: what it gives may suffice. That thread is
// inside the holder, so it waits for no budget, and the wait ends.
std::size_t BudgetNode::ask_holders(std::size_t bytes, limits::BudgetRequest* request) noexcept {
    if (limits::inside_holder) return 0;
    std::unique_lock lock(budgets().mutex);
    // Each request goes through the order by itself: what another request asked of a holder says
    // nothing about what the holder can still give.
    HolderPosition asked;
    const HolderPosition* after = nullptr;
    const auto fits = [&] {
        if (request == nullptr || !request->charged_->fits(*request)) return false;
        request->has_fitted_ = true;
        return true;
    };
    ++holds_;
    std::size_t given = 0;
    while (given < bytes && !fits()) {
        HolderEntry* const entry = next_holder(after);
        if (entry == nullptr) break;
        if (entry->asked_by != nullptr) {
            lock.unlock();
            std::this_thread::sleep_for(limits::wait_step);
            lock.lock();
            continue;
        }
        asked = entry->position;
        after = &asked;
        given += ask(*entry, bytes - given, lock);
    }
    if (!is_ended_) add(totals().reclaimed_bytes, given);
    --holds_;
    drop_unused(this);
    return given;
}

void BudgetNode::forget_askers() noexcept {
    for (HolderEntry* entry = holders_; entry != nullptr; entry = entry->next) {
        if (entry->asked_by != &limits::inside_holder) entry->asked_by = nullptr;
    }
    for (BudgetNode* child = children_; child != nullptr; child = child->next_) {
        child->forget_askers();
    }
}

HolderEntry* BudgetNode::next_holder(const HolderPosition* after) const noexcept {
    HolderEntry* next = nullptr;
    const auto consider = [&](HolderEntry* entry) {
        if (entry == nullptr) return;
        if (after != nullptr && !after->comes_before(entry->position)) return;
        if (next == nullptr || entry->position.comes_before(next->position)) next = entry;
    };
    for (HolderEntry* entry = holders_; entry != nullptr; entry = entry->next) consider(entry);
    for (const BudgetNode* child = children_; child != nullptr; child = child->next_) {
        if (child->holders_below_ != 0) consider(child->next_holder(after));
    }
    return next;
}

std::size_t BudgetNode::ask(HolderEntry& entry, std::size_t bytes,
                            std::unique_lock<std::mutex>& lock) noexcept {
    entry.asked_by = &limits::inside_holder;
    if (!is_ended_) add(totals().reclaims, 1);
    MemoryHolder& holder = *entry.holder;
    lock.unlock();
    limits::inside_holder = true;
    const std::size_t available = holder.available();
    const std::size_t given = available == 0 ? 0 : holder.give(std::min(bytes, available));
    limits::inside_holder = false;
    lock.lock();
    entry.asked_by = nullptr;
    if (entry.is_removed) budgets().free_holders.give_back(entry);
    return given;
}

}  // namespace detail

namespace limits {

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
    for (BudgetNode* root = budgets().roots; root != nullptr; root = root->next()) {
        root->forget_askers();
    }
    unlock_budgets();
}

}  // namespace limits
}  // namespace tensorpool
