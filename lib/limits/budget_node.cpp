#include "limits/budget_node.hpp"

#include "base/registry.hpp"
#include "limits/budgets.hpp"
#include "statistics/records/record_values.hpp"

namespace tensorpool::limits {
namespace {

void set(detail::Counter& counter, std::size_t value) noexcept {
    counter.store(value, std::memory_order_relaxed);
}

}  // namespace

bool BudgetCounters::open(std::string_view name, const BudgetCounters* parent,
                          BudgetLimits limits) noexcept {
    record_.emplace(name, [&](statistics::BudgetRecord& record) {
        if (parent != nullptr) set(record.parent, value_of((*parent->record_)->id));
        set(record.totals.soft_bytes, limits.soft);
        set(record.totals.hard_bytes, limits.hard);
    });
    if (!*record_) record_.reset();
    return !is_ended();
}

void BudgetCounters::end() noexcept {
    set(ended_.in_use_bytes, in_use());
    record_->leave();
    record_.reset();
}

std::size_t BudgetCounters::limit(bool may_pass_soft) const noexcept {
    if (is_ended()) return SIZE_MAX;
    const std::size_t soft = value_of(totals().soft_bytes);
    if (soft != 0 && !may_pass_soft) return soft;
    const std::size_t hard = value_of(totals().hard_bytes);
    return hard == 0 ? SIZE_MAX : hard;
}

void BudgetCounters::set_limits(BudgetLimits limits) noexcept {
    set(totals().soft_bytes, limits.soft);
    set(totals().hard_bytes, limits.hard);
}

BudgetStatistics BudgetCounters::statistics() const noexcept {
    return record_ ? statistics::statistics_of(**record_) : BudgetStatistics();
}

}  // namespace tensorpool::limits

namespace tensorpool::detail {

using limits::BudgetRequest;
using limits::budgets;

BudgetNode* BudgetNode::open(BudgetNode* parent, std::string_view name,
                             BudgetLimits limits) noexcept {
    const std::lock_guard guard(budgets().mutex);
    budgets().were_used.store(true, std::memory_order_relaxed);
    BudgetNode* const node = budgets().free_nodes.take();
    if (node == nullptr) return nullptr;
    if (!node->counters.open(name, parent == nullptr ? nullptr : &parent->counters, limits)) {
        budgets().free_nodes.give_back(*node);
        return nullptr;
    }
    node->parent = parent;
    base::link_in_front(node->siblings(), *node);
    if (parent != nullptr) parent->hold();
    return node;
}

void BudgetNode::end() noexcept {
    const std::lock_guard guard(budgets().mutex);
    counters.end();
    let_go_locked();
}

void BudgetNode::let_go() noexcept {
    if (!release()) return;
    const std::lock_guard guard(budgets().mutex);
    drop_unused(this);
}

BudgetNode*& BudgetNode::siblings() noexcept {
    return parent == nullptr ? budgets().roots : parent->children;
}

void BudgetNode::drop_unused(BudgetNode* node) noexcept {
    while (node != nullptr && node->holds_.load(std::memory_order_relaxed) == 0 &&
           node->counters.in_use() == 0) {
        BudgetNode* const above = node->parent;
        base::unlink(node->siblings(), *node);
        if (above != nullptr) above->holds_.fetch_sub(1, std::memory_order_relaxed);
        node->holds_.store(1, std::memory_order_relaxed);
        budgets().free_nodes.give_back(*node);
        node = above;
    }
}

// Without a holder that could be asked, a soft limit has no effect.
std::size_t BudgetNode::limit(bool may_pass_soft) const noexcept {
    return counters.limit(may_pass_soft || holders.below == 0);
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
    for (BudgetNode* node = this; node != nullptr; node = node->parent) {
        node->counters.charge(charged);
    }
    return charged;
}

void BudgetNode::refund(std::size_t bytes) noexcept {
    if (bytes == 0) return;
    const std::lock_guard guard(budgets().mutex);
    for (BudgetNode* node = this; node != nullptr; node = node->parent) {
        node->counters.refund(bytes);
    }
    drop_unused(this);
}

bool BudgetNode::is_within(const BudgetNode& other) const noexcept {
    const std::lock_guard guard(budgets().mutex);
    const BudgetNode* node = this;
    while (node != nullptr && node != &other) node = node->parent;
    return node != nullptr;
}

std::size_t BudgetNode::set_limits(BudgetLimits limits) noexcept {
    const std::lock_guard guard(budgets().mutex);
    counters.set_limits(limits);
    return counters.in_use() - std::min(counters.in_use(), limit(false));
}

std::size_t BudgetNode::in_use() const noexcept {
    const std::lock_guard guard(budgets().mutex);
    return counters.in_use();
}

BudgetStatistics BudgetNode::statistics() const noexcept {
    const std::lock_guard guard(budgets().mutex);
    return counters.statistics();
}

}  // namespace tensorpool::detail
