#include "limits/budget_node.hpp"

#include <algorithm>
#include <cstdint>

#include <tensorpool/detail/saturating.hpp>

#include "base/alignment.hpp"
#include "base/atomics.hpp"
#include "limits/budgets.hpp"
#include "limits/ladder.hpp"
#include "statistics/sums/budget_statistics.hpp"

namespace tensorpool::detail {

using limits::BudgetRequest;
using limits::budgets;

namespace {

std::size_t value_of(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}
void set(Counter& counter, std::size_t value) noexcept {
    counter.store(value, std::memory_order_relaxed);
}

}  // namespace

BudgetNode* BudgetNode::open(BudgetNode* parent, std::string_view name,
                             BudgetLimits limits) noexcept {
    const std::lock_guard guard(budgets().mutex);
    budgets().were_used.store(true, std::memory_order_relaxed);
    BudgetNode* const node = budgets().free_nodes.take();
    if (node == nullptr) return nullptr;
    node->record_.emplace(name, [&](statistics::BudgetRecord& record) {
        if (parent != nullptr) set(record.parent, value_of((*parent->record_)->id));
        set(record.totals.soft_bytes, limits.soft);
        set(record.totals.hard_bytes, limits.hard);
    });
    if (!*node->record_) {
        node->record_.reset();
        budgets().free_nodes.give_back(*node);
        return nullptr;
    }
    node->is_ended_ = false;
    set(node->ended_.in_use_bytes, 0);
    node->link(parent);
    return node;
}

void BudgetNode::end() noexcept {
    const std::lock_guard guard(budgets().mutex);
    is_ended_ = true;
    living_reservations_ = 0;
    const std::size_t reserved = value_of(totals().reserved_bytes);
    if (reserved != 0) {
        set(totals().reserved_bytes, 0);
        refund_up(reserved);
    }
    set(ended_.in_use_bytes, value_of(totals().in_use_bytes));
    record_->leave();
    record_.reset();
    drop_unused(this);
}

void BudgetNode::hold() noexcept {
    const std::lock_guard guard(budgets().mutex);
    ++holds_;
}

void BudgetNode::let_go() noexcept {
    const std::lock_guard guard(budgets().mutex);
    --holds_;
    drop_unused(this);
}

void BudgetNode::link(BudgetNode* parent) noexcept {
    parent_ = parent;
    BudgetNode*& list = parent == nullptr ? budgets().roots : parent->children_;
    previous_ = nullptr;
    next_ = list;
    if (list != nullptr) list->previous_ = this;
    list = this;
    if (parent != nullptr) ++parent->holds_;
}

void BudgetNode::unlink() noexcept {
    BudgetNode*& list = parent_ == nullptr ? budgets().roots : parent_->children_;
    (previous_ == nullptr ? list : previous_->next_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
    if (parent_ != nullptr) --parent_->holds_;
}

void BudgetNode::drop_unused(BudgetNode* node) noexcept {
    while (node != nullptr && node->is_ended_ && node->holds_ == 0 &&
           value_of(node->ended_.in_use_bytes) == 0) {
        BudgetNode* const parent = node->parent_;
        node->unlink();
        budgets().free_nodes.give_back(*node);
        node = parent;
    }
}

// Without a holder that could be asked, a soft limit has no effect.
std::size_t BudgetNode::limit(bool may_pass_soft) const noexcept {
    if (is_ended_) return SIZE_MAX;
    const std::size_t hard = value_of(totals().hard_bytes);
    const std::size_t soft = value_of(totals().soft_bytes);
    if (soft != 0 && !may_pass_soft && holders_below_ != 0) return soft;
    return hard == 0 ? SIZE_MAX : hard;
}

std::size_t BudgetNode::room(bool may_pass_soft) const noexcept {
    const std::size_t most = limit(may_pass_soft);
    const std::size_t in_use = value_of(totals().in_use_bytes);
    return most == SIZE_MAX ? SIZE_MAX : most - std::min(most, in_use);
}

// Reserved bytes are charged already, here and above.
std::size_t BudgetNode::allowed(bool may_pass_soft) const noexcept {
    return sum(value_of(totals().reserved_bytes), allowed_beyond_reserved(may_pass_soft));
}

std::size_t BudgetNode::allowed_beyond_reserved(bool may_pass_soft) const noexcept {
    const std::size_t above = parent_ == nullptr ? SIZE_MAX : parent_->allowed(may_pass_soft);
    return std::min(room(may_pass_soft), above);
}

bool BudgetNode::fits(const BudgetRequest& request) const noexcept {
    const bool may_pass_soft = !request.by_soft_;
    const std::size_t most =
        request.sets_aside_ ? allowed_beyond_reserved(may_pass_soft) : allowed(may_pass_soft);
    return most >= request.needed_;
}

std::size_t BudgetNode::charge(std::size_t needed, std::size_t wanted, std::size_t unit,
                               BudgetRequest& request) noexcept {
    const std::lock_guard guard(budgets().mutex);
    const bool may_pass_soft = request.may_pass_soft_ || limits::is_inside_holder();
    std::size_t most = allowed(false);
    // No surplus exceeds a soft limit.
    if (most < needed && may_pass_soft) most = std::min(allowed(true), needed);
    if (most < needed) {
        request.sets_aside_ = false;
        request.needed_ = needed;
        note_refusal(request);
        return 0;
    }
    const std::size_t surplus = std::min(std::max(wanted, needed), most) - needed;
    const std::size_t charged = needed + base::align_down(surplus, unit);
    charge_up(charged, true);
    return charged;
}

bool BudgetNode::reserve(std::size_t bytes, BudgetRequest& request) noexcept {
    const std::lock_guard guard(budgets().mutex);
    const bool may_pass_soft = request.may_pass_soft_ || limits::is_inside_holder();
    if (allowed_beyond_reserved(may_pass_soft) < bytes) {
        request.sets_aside_ = true;
        request.needed_ = bytes;
        note_refusal(request);
        return false;
    }
    charge_up(bytes, false);
    add(totals().reserved_bytes, bytes);
    living_reservations_ += bytes;
    ++holds_;
    return true;
}

void BudgetNode::end_reservation(std::size_t bytes) noexcept {
    const std::lock_guard guard(budgets().mutex);
    const std::size_t left = std::min(bytes, value_of(totals().reserved_bytes));
    set(totals().reserved_bytes, value_of(totals().reserved_bytes) - left);
    refund_up(left);
    living_reservations_ -= std::min(bytes, living_reservations_);  // none after the budget's end
    --holds_;
    drop_unused(this);
}

void BudgetNode::charge_up(std::size_t bytes, bool uses_reserved) noexcept {
    for (BudgetNode* node = this; node != nullptr && bytes != 0; node = node->parent_) {
        statistics::BudgetTotals& totals = node->totals();
        if (uses_reserved) {
            const std::size_t reserved = value_of(totals.reserved_bytes);
            const std::size_t used = std::min(reserved, bytes);
            set(totals.reserved_bytes, reserved - used);
            bytes -= used;
        }
        uses_reserved = true;
        add(totals.in_use_bytes, bytes);
        base::raise_to(totals.peak_bytes, value_of(totals.in_use_bytes));
    }
}

void BudgetNode::refund(std::size_t bytes) noexcept {
    if (bytes == 0) return;
    const std::lock_guard guard(budgets().mutex);
    refund_up(bytes);
    drop_unused(this);
}

void BudgetNode::cancel(std::size_t bytes) noexcept {
    if (bytes == 0) return;
    const std::lock_guard guard(budgets().mutex);
    for (BudgetNode* node = this; node != nullptr && bytes != 0; node = node->parent_) {
        statistics::BudgetTotals& totals = node->totals();
        const std::size_t reserved = value_of(totals.reserved_bytes);
        const std::size_t restored = std::min(bytes, node->living_reservations_ - reserved);
        set(totals.reserved_bytes, reserved + restored);
        bytes -= restored;
        set(totals.in_use_bytes, value_of(totals.in_use_bytes) - bytes);
    }
    drop_unused(this);
}

void BudgetNode::refund_up(std::size_t bytes) noexcept {
    for (BudgetNode* node = this; node != nullptr; node = node->parent_) {
        Counter& in_use = node->totals().in_use_bytes;
        set(in_use, value_of(in_use) - bytes);
    }
}

// Finds the first level that does not allow the charge.
void BudgetNode::note_refusal(BudgetRequest& request) noexcept {
    request.charged_ = this;
    request.by_soft_ = false;
    request.by_soft_ = !request.may_pass_soft_ && fits(request);
    const bool may_pass_soft = !request.by_soft_;
    std::size_t needed = request.needed_;
    for (BudgetNode* node = this; node != nullptr; node = node->parent_) {
        const std::size_t reserved = value_of(node->totals().reserved_bytes);
        if (node != this || !request.sets_aside_) needed -= std::min(needed, reserved);
        if (node->room(may_pass_soft) >= needed) continue;
        request.refused_by_ = node;
        // A limit may have been lowered below what is in use.
        request.missing_ =
            sum(value_of(node->totals().in_use_bytes), needed) - node->limit(may_pass_soft);
        return;
    }
}

bool BudgetNode::is_within(const BudgetNode& other) const noexcept {
    const std::lock_guard guard(budgets().mutex);
    const BudgetNode* node = this;
    while (node != nullptr && node != &other) node = node->parent_;
    return node != nullptr;
}

bool BudgetNode::would_fit(std::size_t bytes) const noexcept {
    const std::lock_guard guard(budgets().mutex);
    return allowed(true) >= bytes;
}

bool BudgetNode::would_fit(const BudgetRequest& request) const noexcept {
    const std::lock_guard guard(budgets().mutex);
    return fits(request);
}

void BudgetNode::set_limits(BudgetLimits limits) noexcept {
    const std::lock_guard guard(budgets().mutex);
    set(totals().soft_bytes, limits.soft);
    set(totals().hard_bytes, limits.hard);
}

std::size_t BudgetNode::excess() const noexcept {
    const std::lock_guard guard(budgets().mutex);
    const std::size_t in_use = value_of(totals().in_use_bytes);
    return in_use - std::min(in_use, limit(false));
}

std::size_t BudgetNode::in_use() const noexcept {
    const std::lock_guard guard(budgets().mutex);
    return value_of(totals().in_use_bytes);
}

void BudgetNode::count_refusal() noexcept {
    const std::lock_guard guard(budgets().mutex);
    if (!is_ended_) add(totals().refusals, 1);
}

BudgetStatistics BudgetNode::statistics() const noexcept {
    const std::lock_guard guard(budgets().mutex);
    return record_ ? statistics::statistics_of(**record_) : BudgetStatistics();
}

}  // namespace tensorpool::detail

namespace tensorpool::limits {

bool BudgetRequest::may_retry() noexcept {
    if (refused_by_ == nullptr) return false;
    BudgetNode* const refused_by = std::exchange(refused_by_, nullptr);
    has_fitted_ = false;
    // Nothing is given for a request that exceeds the limit even if all memory were.
    const bool may_fit = by_soft_ || missing_ <= refused_by->in_use();
    Lack lack{.budget = refused_by, .bytes = missing_, .request = this};
    const std::size_t given = may_fit ? ladder().climb(lack) : 0;
    reclaimed_ += given;
    if (by_soft_) {
        may_pass_soft_ = true;
        return true;
    }
    // What holders gave to another request, or a refund, may be enough. If it was, but another
    // request was faster, holders may have more.
    if (given != 0 || has_fitted_ || charged_->would_fit(*this)) return true;
    refused_by_ = refused_by;
    refused_by->count_refusal();
    return false;
}

}  // namespace tensorpool::limits
