#include "limits/budget_node.hpp"

#include "limits/budgets.hpp"

namespace tensorpool::detail {

using limits::BudgetRequest;
using limits::budgets;

BudgetNode* BudgetNode::open(BudgetNode* parent, std::string_view name,
                             BudgetLimits limits) noexcept {
    const std::lock_guard guard(budgets().mutex);
    budgets().were_used.store(true, std::memory_order_relaxed);
    BudgetNode* const node = budgets().free_nodes.take();
    if (node == nullptr) return nullptr;
    if (!node->counters_.open(name, parent == nullptr ? nullptr : &parent->counters_, limits)) {
        budgets().free_nodes.give_back(*node);
        return nullptr;
    }
    node->link(parent);
    return node;
}

void BudgetNode::end() noexcept {
    const std::lock_guard guard(budgets().mutex);
    counters_.end();
    let_go_locked();
}

void BudgetNode::let_go() noexcept {
    if (!release()) return;
    const std::lock_guard guard(budgets().mutex);
    drop_unused(this);
}

void BudgetNode::link(BudgetNode* parent) noexcept {
    BudgetNode*& list = parent == nullptr ? budgets().roots : parent->links_.children;
    links_ = {.parent = parent, .next = list};
    if (list != nullptr) list->links_.previous = this;
    list = this;
    if (parent != nullptr) parent->hold();
}

void BudgetNode::unlink() noexcept {
    BudgetNode* const parent = links_.parent;
    BudgetNode*& list = parent == nullptr ? budgets().roots : parent->links_.children;
    (links_.previous == nullptr ? list : links_.previous->links_.next) = links_.next;
    if (links_.next != nullptr) links_.next->links_.previous = links_.previous;
    if (parent != nullptr) parent->holds_.fetch_sub(1, std::memory_order_relaxed);
}

void BudgetNode::drop_unused(BudgetNode* node) noexcept {
    while (node != nullptr && node->holds_.load(std::memory_order_relaxed) == 0 &&
           node->counters_.in_use() == 0) {
        BudgetNode* const parent = node->links_.parent;
        node->unlink();
        node->holds_.store(1, std::memory_order_relaxed);
        budgets().free_nodes.give_back(*node);
        node = parent;
    }
}

// Without a holder that could be asked, a soft limit has no effect.
std::size_t BudgetNode::limit(bool may_pass_soft) const noexcept {
    return counters_.limit(may_pass_soft || holders_.below == 0);
}

std::size_t BudgetNode::charge(std::size_t needed, std::size_t wanted, std::size_t unit,
                               BudgetRequest& request) noexcept {
    const std::lock_guard guard(budgets().mutex);
    std::size_t most = allowed(false);
    // No surplus exceeds a soft limit.
    if (most < needed && request.may_pass_soft()) most = std::min(allowed(true), needed);
    if (most < needed) {
        request.refuse(*this, needed);
        return 0;
    }
    const std::size_t surplus = std::min(std::max(wanted, needed), most) - needed;
    const std::size_t charged = needed + base::align_down(surplus, unit);
    for (BudgetNode* node = this; node != nullptr; node = node->links_.parent) {
        node->counters_.charge(charged);
    }
    return charged;
}

void BudgetNode::refund(std::size_t bytes) noexcept {
    if (bytes == 0) return;
    const std::lock_guard guard(budgets().mutex);
    for (BudgetNode* node = this; node != nullptr; node = node->links_.parent) {
        node->counters_.refund(bytes);
    }
    drop_unused(this);
}

bool BudgetNode::is_within(const BudgetNode& other) const noexcept {
    const std::lock_guard guard(budgets().mutex);
    const BudgetNode* node = this;
    while (node != nullptr && node != &other) node = node->links_.parent;
    return node != nullptr;
}

std::size_t BudgetNode::set_limits(BudgetLimits limits) noexcept {
    const std::lock_guard guard(budgets().mutex);
    counters_.set_limits(limits);
    return counters_.in_use() - std::min(counters_.in_use(), limit(false));
}

std::size_t BudgetNode::in_use() const noexcept {
    const std::lock_guard guard(budgets().mutex);
    return counters_.in_use();
}

BudgetStatistics BudgetNode::statistics() const noexcept {
    const std::lock_guard guard(budgets().mutex);
    return counters_.statistics();
}

}  // namespace tensorpool::detail
