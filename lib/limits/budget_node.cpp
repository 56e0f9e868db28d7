#include "limits/budget_node.hpp"

#include <chrono>
#include <cmath>
#include <functional>

#include "events/timeline.hpp"
#include "limits/commit_budget.hpp"
#include "limits/ladder.hpp"

namespace tensorpool::limits {
namespace {

using base::BytesText;

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

std::size_t give_of_holders(Lack& lack) noexcept {
    return lack.budget == nullptr ? 0 : ask_holders(*lack.budget, lack.bytes, lack.request);
}

constexpr Rung holders{"holders of budgets", give_of_holders};
constinit Ladder the_ladder(holders);

// A request ends here if a holder reports single bytes that it does not give.
constexpr unsigned max_rounds = 10'000;
constexpr std::size_t max_children = 3;
constexpr std::size_t max_holders = 3;

// The largest children, by what is charged to them.
void describe_level(const BudgetNode& node, base::FixedText& text, bool has_refused) noexcept {
    const BudgetStatistics now = node.counters.statistics();
    text.add("\n  %s'%.47s': ", has_refused ? "refused by " : "", now.name);
    text.add("%s in use of ", BytesText(now.in_use_bytes).c_str());
    text.add("%s", now.hard_bytes == 0 ? "no limit" : BytesText(now.hard_bytes).c_str());
    std::array<const BudgetNode*, max_children> largest = {};
    const auto charge = [](const BudgetNode* child) {
        return child == nullptr ? 0 : child->counters.in_use();
    };
    std::size_t in_children = 0;
    for (const BudgetNode* child = node.children; child != nullptr; child = child->next) {
        in_children += charge(child);
        if (child->counters.is_ended() || charge(child) <= charge(largest.back())) continue;
        largest.back() = child;
        std::ranges::stable_sort(largest, std::greater<>(), charge);
    }
    for (const BudgetNode* child : largest) {
        if (child == nullptr) break;
        text.add("; '%.47s' %s", child->counters.statistics().name,
                 BytesText(charge(child)).c_str());
    }
    if (in_children != 0) {
        const std::size_t own = now.in_use_bytes - std::min(now.in_use_bytes, in_children);
        text.add("; itself %s", BytesText(own).c_str());
    }
}

// Calls `visit` with the holders of a budget and of those below it. The tree may be deep.
template <class Visit>
void for_each_holder(const BudgetNode& top, Visit visit) noexcept {
    const BudgetNode* node = &top;
    for (;;) {
        for (HolderEntry* entry = node->holders.first; entry != nullptr; entry = entry->next)
            visit(*entry);
        if (node->holders.below != 0 && node->children != nullptr) {
            node = node->children;
            continue;
        }
        while (node != &top && node->next == nullptr) node = node->parent;
        if (node == &top) return;
        node = node->next;
    }
}

// In the order in which they are asked.
void list_holders(const BudgetNode& node, base::FixedText& text) noexcept {
    const HolderEntry* entry = next_holder(node, nullptr);
    for (std::size_t i = 0; entry != nullptr && i != max_holders; ++i) {
        text.add("%s'%s'", i == 0 ? ": " : ", ", entry->name);
        entry = next_holder(node, &entry->position);
    }
    if (entry != nullptr) text.add(", ...");
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
    const bool doubts = request != nullptr && request->doubts_holders();
    while ((given < bytes || doubts) && (request == nullptr || !request->fits())) {
        HolderEntry* const entry = next_holder(budget, after);
        if (entry == nullptr) break;
        if (entry->asked_by != nullptr) {
            wait_a_step(lock);
            continue;
        }
        asked = entry->position;
        after = &asked;
        given += ask(budget, *entry, doubts ? bytes : bytes - given, lock);
    }
    budget.counters.count(&statistics::BudgetTotals::reclaimed_bytes, given);
    budget.let_go_locked();
    return given;
}

HolderEntry* next_holder(const BudgetNode& budget, const HolderPosition* after) noexcept {
    HolderEntry* next = nullptr;
    for_each_holder(budget, [&](HolderEntry& entry) {
        if (after != nullptr && entry.position <= *after) return;
        if (next == nullptr || entry.position < next->position) next = &entry;
    });
    return next;
}

void forget_askers(BudgetNode& budget) noexcept {
    for_each_holder(budget, [](HolderEntry& entry) {
        if (entry.asked_by != &inside_holder) entry.asked_by = nullptr;
    });
}

Ladder& ladder() noexcept {
    return the_ladder;
}

bool Ladder::gives_for(const base::Refusal& refusal) const noexcept {
    const LimitKind limit = events::limit_kind(refusal);
    if (limit != LimitKind::memory && limit != LimitKind::address_space &&
        limit != LimitKind::records) {
        return false;
    }
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

bool BudgetRequest::may_retry() noexcept {
    if (refused_by_ == nullptr) return false;
    BudgetNode* const refused_by = std::exchange(refused_by_, nullptr);
    has_fitted_ = false;
    // Nothing is given for a request that exceeds the limit even if all memory were.
    const bool may_fit = by_soft_ || missing_ <= refused_by->in_use();
    const std::size_t asked = std::max(missing_, unproven_);
    const bool asks_all = doubts_holders();
    Lack lack{.budget = refused_by, .bytes = asked, .request = this};
    const std::size_t given = may_fit ? ladder().climb(lack) : 0;
    reclaimed_ += given;
    if (by_soft_) {
        may_pass_soft_ = true;
        return true;
    }
    // What holders gave to another request, or a refund, may be enough. If it was, but another
    // request was faster, holders may have more.
    const std::lock_guard guard(budgets().mutex);
    if (has_fitted_ || fits()) return true;
    // A holder may report more than it gave, or free parts of pages that stay charged. Then every
    // holder is asked, for more each time, until all of them were asked for all that is charged.
    const std::size_t charge = refused_by->counters.in_use();
    const bool was_all = asks_all && asked >= charge;
    unproven_ = charge < lowest_charge_ ? 0 : detail::sum(unproven_, std::max(given, unproven_));
    lowest_charge_ = std::min(lowest_charge_, charge);
    if (given != 0 && !was_all && ++rounds_ != max_rounds) return true;
    refused_by_ = refused_by;
    refused_by->counters.count(&statistics::BudgetTotals::refusals);
    return false;
}

base::Refusal BudgetRequest::refusal() const noexcept {
    const BudgetStatistics budget = refused_by_->statistics();
    base::Refusal refusal = {"the budget's hard limit", budget.hard_bytes};
    refusal.needed_limit = detail::sum(budget.hard_bytes, missing_);
    return refusal;
}

bool BudgetRequest::may_pass_soft() const noexcept {
    return may_pass_soft_ || is_inside_holder();
}

// Finds the first level that does not allow the charge.
void BudgetRequest::refuse(BudgetNode& charged, std::size_t needed) noexcept {
    charged_ = &charged;
    needed_ = needed;
    by_soft_ = !may_pass_soft_ && charged.allowed(true) >= needed;
    for (BudgetNode* node = charged_; node != nullptr; node = node->parent) {
        if (node->room(!by_soft_) >= needed) continue;
        refused_by_ = node;
        // A limit may have been lowered below what is in use.
        missing_ = detail::sum(node->counters.in_use(), needed) - node->limit(!by_soft_);
        return;
    }
}

bool BudgetRequest::fits() noexcept {
    const bool fits = charged_->allowed(!by_soft_) >= needed_;
    has_fitted_ = has_fitted_ || fits;
    return fits;
}

void BudgetRequest::describe(base::FixedText& text) const noexcept {
    if (refused_by_ == nullptr) return;
    const std::lock_guard guard(budgets().mutex);
    text.add("\n  holders gave %s", BytesText(reclaimed_).c_str());
    list_holders(*refused_by_, text);
    // First, so that a long text is not cut off before it.
    if (!refused_by_->counters.is_ended()) describe_level(*refused_by_, text, true);
    for (const BudgetNode* node = charged_; node != nullptr; node = node->parent) {
        if (!node->counters.is_ended() && node != refused_by_) describe_level(*node, text, false);
    }
}

}  // namespace tensorpool::limits
