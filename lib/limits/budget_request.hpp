#pragma once

#include "base/refusal.hpp"
#include "base/text.hpp"

namespace tensorpool::detail {
class BudgetNode;
}  // namespace tensorpool::detail

namespace tensorpool::limits {

using detail::BudgetNode;

/// How one request for memory meets the limits of budgets: which kind it may still pass, what
/// refused it, and what holders gave. Charging happens under locks, asking holders does not, so a
/// request that is refused comes back here:
///
///     BudgetRequest request;
///     do {
///         memory = try_to_get(request);   // charges, under locks
///     } while (memory == nullptr && request.may_retry());   // asks holders, without a lock
class BudgetRequest {
public:
    BudgetRequest() noexcept = default;
    /// Returns a request that may exceed soft limits at once.
    static BudgetRequest beyond_soft() noexcept {
        BudgetRequest request;
        request.may_pass_soft_ = true;
        return request;
    }

    /// Asks holders for what was missing at the latest refusal. Returns whether the same charge may
    /// succeed now. Returns false if no budget refused the request since the last call. The caller
    /// holds no lock. Calls that a holder makes while it is asked ask no other holder.
    bool may_retry() noexcept;

    bool is_refused() const noexcept { return refused_by_ != nullptr; }
    /// Forgets the latest refusal: another limit decides.
    void clear() noexcept { refused_by_ = nullptr; }
    /// Describes the latest refusal. REQUIRES: `is_refused()`.
    base::Refusal refusal() const noexcept;
    /// Adds lines: what holders gave and which there are, and for the budget that refused, then for
    /// each other level from the charged budget up, its hard limit, its charge and its largest
    /// children. Adds nothing if no budget refused the request.
    void describe(base::FixedText& text) const noexcept;

    // For budgets, under their lock.
    /// Returns whether the charge may exceed soft limits. It may also inside a holder.
    bool may_pass_soft() const noexcept;
    /// Notes that `needed` bytes could not be charged to `charged`, and which level does not allow
    /// them.
    void refuse(BudgetNode& charged, std::size_t needed) noexcept;
    /// Returns whether holders reported more than the charge fell: then others are asked too.
    bool doubts_holders() const noexcept { return unproven_ != 0; }
    /// Returns whether the refused charge would fit now. Notes it if so.
    bool fits() noexcept;

private:
    bool may_pass_soft_ = false;
    BudgetNode* charged_ = nullptr;     // that the request is charged to
    BudgetNode* refused_by_ = nullptr;  // it or one above it
    bool by_soft_ = false;
    std::size_t needed_ = 0;
    std::size_t missing_ = 0;               // in the budget that refused
    bool has_fitted_ = false;               // while holders were asked
    std::size_t reclaimed_ = 0;             // what holders gave for this request, as they reported
    std::size_t lowest_charge_ = SIZE_MAX;  // after holders were asked
    std::size_t unproven_ = 0;              // reported since then, without a lower charge
    unsigned rounds_ = 0;
};

/// The lines that BudgetRequest::describe adds, for AllocationFailure::details.
class BudgetLines {
public:
    explicit BudgetLines(const BudgetRequest& request) noexcept {
        base::FixedText text(text_, sizeof text_);
        request.describe(text);
    }
    const char* c_str() const noexcept { return text_; }

private:
    char text_[1024];
};

}  // namespace tensorpool::limits
