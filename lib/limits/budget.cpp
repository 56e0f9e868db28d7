#include <tensorpool/budget.hpp>

#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include <tensorpool/errors.hpp>

#include "base/refusal.hpp"
#include "limits/budget_node.hpp"
#include "limits/budgets.hpp"

namespace tensorpool {
namespace {

// A negative number that becomes a size is larger.
constexpr std::size_t max_limit = std::size_t{1} << 60;

void check(const std::string& name, const char* limit, std::size_t bytes) {
    if (bytes <= max_limit) return;
    throw std::invalid_argument("tensorpool: budget '" + name + "': the " + limit + " limit is " +
                                std::to_string(bytes) + " B; expected at most " +
                                std::to_string(max_limit) + " B, or 0 for none");
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

// More would overflow the sums of what is in use.
void check_reservation(const std::string& name, std::size_t bytes) {
    if (bytes <= max_limit) return;
    throw AllocationError(
        name.c_str(),
        AllocationFailure{.asked = bytes, .limit = "the largest size", .limit_bytes = max_limit});
}

[[noreturn]] void refuse(const std::string& name, std::size_t bytes,
                         const limits::BudgetRequest& request) {
    AllocationFailure failure = base::failure_of(request.refusal(), bytes, 0, 0);
    const limits::BudgetLines lines(request);
    failure.details = lines.c_str();
    throw AllocationError(name.c_str(), failure);
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
    return node_->allowed(true, true) >= bytes;
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

BudgetReservation Budget::reserve(std::size_t bytes) {
    check_reservation(name_, bytes);
    limits::BudgetRequest request;
    while (!node_->reserve(bytes, request)) {
        if (!request.may_retry()) refuse(name_, bytes, request);
    }
    return BudgetReservation(node_, bytes);
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

void BudgetReservation::give_back() noexcept {
    if (node_ != nullptr) std::exchange(node_, nullptr)->end_reservation(bytes_);
}

}  // namespace tensorpool
