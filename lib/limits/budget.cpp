#include <tensorpool/budget.hpp>

#include <stdexcept>

#include "limits/budget_node.hpp"

namespace tensorpool {
namespace {

void check(const std::string& name, const char* limit, std::size_t bytes) {
    if (bytes <= limits::max_limit) return;
    throw std::invalid_argument("tensorpool: budget '" + name + "': the " + limit + " limit is " +
                                std::to_string(bytes) + " B; expected at most " +
                                std::to_string(limits::max_limit) + " B, or 0 for none");
}

BudgetLimits validated(const std::string& name, BudgetLimits limits) {
    check(name, "soft", limits.soft);
    check(name, "hard", limits.hard);
    if (limits.hard != 0 && limits.soft > limits.hard) {
        throw std::invalid_argument(
            "tensorpool: budget '" + name + "': the soft limit is " + std::to_string(limits.soft) +
            " B; expected at most the hard limit, " + std::to_string(limits.hard) + " B");
    }
    return limits;
}

}  // namespace

Budget::Budget(detail::BudgetNode* parent, std::string&& name, BudgetLimits limits)
    : name_(std::move(name)),
      node_(detail::BudgetNode::open(parent, name_, validated(name_, limits))) {
    if (node_ == nullptr) throw std::bad_alloc();
}

Budget::Budget(std::string name, BudgetLimits limits) : Budget(nullptr, std::move(name), limits) {}

Budget::Budget(Budget& parent, std::string name, BudgetLimits limits)
    : Budget(parent.node_, std::move(name), limits) {}

Budget::~Budget() {
    node_->end();
}

bool Budget::would_fit(std::size_t bytes) const noexcept {
    const std::lock_guard guard(limits::budgets().mutex);
    return node_->allowed(true) >= bytes;
}

std::size_t Budget::in_use() const noexcept {
    return node_->in_use();
}

BudgetLimits Budget::limits() const noexcept {
    const BudgetStatistics now = node_->statistics();
    return {.soft = now.soft_bytes, .hard = now.hard_bytes};
}

void Budget::set_limits(BudgetLimits limits) {
    limits::ask_holders(*node_, node_->set_limits(validated(name_, limits)));
}

HolderRegistration Budget::add_holder(MemoryHolder& holder, HolderOptions options) {
    detail::HolderEntry* const entry = limits::add_holder(*node_, holder, options);
    if (entry == nullptr) throw std::bad_alloc();
    return HolderRegistration(entry);
}

std::size_t Budget::reclaim(std::size_t bytes) noexcept {
    return limits::ask_holders(*node_, bytes);
}

BudgetStatistics Budget::statistics() const noexcept {
    return node_->statistics();
}

HolderRegistration::~HolderRegistration() {
    if (entry_ != nullptr) limits::remove_holder(*entry_);
}

}  // namespace tensorpool
