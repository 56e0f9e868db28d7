#pragma once

#include "limits/budget_node.hpp"

namespace tensorpool::limits {

/// A reference to the budget in some options, or to none. It stays valid after the `Budget` ended.
/// Thread-safe, except for assignment.
class HeldBudget {
public:
    HeldBudget() noexcept = default;
    explicit HeldBudget(BudgetNode* node) noexcept : node_(node) {
        if (node_ != nullptr) node_->hold();
    }
    explicit HeldBudget(const Budget* budget) noexcept
        : HeldBudget(BudgetAccess::node_of(budget)) {}
    HeldBudget(const HeldBudget& other) noexcept : HeldBudget(other.node_) {}
    HeldBudget(HeldBudget&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    HeldBudget& operator=(HeldBudget other) noexcept {
        std::swap(node_, other.node_);
        return *this;
    }
    ~HeldBudget() {
        if (node_ != nullptr) node_->let_go();
    }

    /// Charges `bytes` bytes. Returns false if a limit does not allow it; `request` then says
    /// which.
    bool charge(std::size_t bytes, BudgetRequest& request) const noexcept {
        request.clear();
        return node_ == nullptr || bytes == 0 || node_->charge(bytes, bytes, 1, request) != 0;
    }
    /// Charges like `charge`, and asks holders until they give no more. The caller holds no lock.
    bool charge_or_ask(std::size_t bytes, BudgetRequest& request) const noexcept {
        while (!charge(bytes, request)) {
            if (!request.may_retry()) return false;
        }
        return true;
    }
    void refund(std::size_t bytes) const noexcept {
        if (node_ != nullptr) node_->refund(bytes);
    }
    BudgetNode* node() const noexcept { return node_; }

private:
    BudgetNode* node_ = nullptr;
};

}  // namespace tensorpool::limits
