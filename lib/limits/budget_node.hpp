#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string_view>

#include <tensorpool/budget.hpp>

#include "base/block_mark.hpp"
#include "base/text.hpp"
#include "limits/budget_request.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::detail {

/// Where a holder stands in the order in which holders are asked.
struct HolderPosition {
    int priority = 0;
    double cost_per_byte = 0;
    std::size_t number = 0;  // of the registration; no other holder has it

    bool comes_before(const HolderPosition& other) const noexcept {
        if (priority != other.priority) return priority < other.priority;
        if (cost_per_byte != other.cost_per_byte) return cost_per_byte < other.cost_per_byte;
        return number < other.number;
    }
};

/// One registered holder. Guarded by the lock of all budgets, except what is set once.
struct HolderEntry {
    MemoryHolder* holder = nullptr;
    BudgetNode* node = nullptr;
    char name[48] = {};
    HolderPosition position;
    HolderEntry* next = nullptr;     // of its budget
    const void* asked_by = nullptr;  // the thread that asks it now
    bool is_removed = false;         // while it was asked, by the thread that asked
    HolderEntry* next_free = nullptr;
};

/// The implementation of a budget. It outlives its `Budget` while something is charged to it or
/// refers to it; its limits then no longer count, and its charges remain with its parents.
///
/// Invariant: a charge is part of the charges of all budgets above, less what their reservations
/// had set aside for it. The charge of a budget exceeds its hard limit only if the limit was
/// lowered below it. One lock, `budgets_mutex`, guards all budgets of the process; it is a leaf
/// above the segment's, so charges can be made under any lock of a pool or an arena.
///
/// It is the mark of each block that a scope charged to it.
class BudgetNode final : public base::BlockMark {
public:
    BudgetNode() noexcept = default;  // for SlabList; `open` begins its life
    BudgetNode(const BudgetNode&) = delete;
    BudgetNode& operator=(const BudgetNode&) = delete;

    /// Makes a budget below `parent`, or a root if that is nullptr. Returns nullptr if there is no
    /// memory.
    static BudgetNode* open(BudgetNode* parent, std::string_view name,
                            BudgetLimits limits) noexcept;
    /// Ends the budget.
    void end() noexcept;

    /// Keeps the object for something that charges it.
    void hold() noexcept;
    void let_go() noexcept;

    /// Charges at least `needed` bytes, and up to `wanted` bytes as far as the limits allow, in
    /// multiples of `unit` beyond `needed`. Returns the bytes charged. Returns 0, and charges
    /// nothing, if `needed` bytes would exceed a limit; `request` then says which.
    std::size_t charge(std::size_t needed, std::size_t wanted, std::size_t unit,
                       limits::BudgetRequest& request) noexcept;
    void refund(std::size_t bytes) noexcept;
    void on_free(std::size_t bytes) noexcept override { refund(bytes); }
    BlockMark* charge() noexcept override { return this; }
    /// Undoes a charge that came to nothing: unlike what `refund` frees, the bytes serve living
    /// reservations again, as far as these lack bytes.
    void cancel(std::size_t bytes) noexcept;
    /// Charges `bytes` that later charges use first. Returns false if they do not fit.
    bool reserve(std::size_t bytes, limits::BudgetRequest& request) noexcept;
    void end_reservation(std::size_t bytes) noexcept;

    /// Returns whether it is `other` or below it.
    bool is_within(const BudgetNode& other) const noexcept;
    bool would_fit(std::size_t bytes) const noexcept;
    /// Returns whether `request`, which this budget was charged with, would fit now. The caller
    /// does not hold the lock.
    bool would_fit(const limits::BudgetRequest& request) const noexcept;
    void set_limits(BudgetLimits limits) noexcept;
    BudgetStatistics statistics() const noexcept;
    std::size_t in_use() const noexcept;
    void count_refusal() noexcept;
    /// Returns the bytes above the limits now; those above the hard one if there is no holder.
    std::size_t excess() const noexcept;

    /// Asks the holders of this budget and of those below it, in their order, until they have given
    /// `bytes`, or until `request` would fit if it is not nullptr. Returns what they gave. The
    /// caller holds no lock. Returns 0 if the calling thread is inside a holder.
    std::size_t ask_holders(std::size_t bytes, limits::BudgetRequest* request) noexcept;

    /// Called in the child of a fork: threads that were asking holders do not exist there.
    void forget_askers() noexcept;
    /// Asks the holders of each root for a sixteenth of what it holds, until `bytes` bytes were
    /// given. The caller holds no lock.
    static void ask_all_holders(std::size_t bytes) noexcept;
    /// Returns nullptr if there is no memory.
    HolderEntry* add_holder(MemoryHolder& holder, const HolderOptions& options) noexcept;
    static void remove_holder(HolderEntry& entry) noexcept;

    BudgetNode* next_free = nullptr;
    /// Returns the next budget with the same parent, or nullptr.
    BudgetNode* next() const noexcept { return next_; }

private:
    friend class limits::BudgetRequest;

    // REQUIRES, for all that follow: the lock is held.
    statistics::BudgetTotals& totals() const noexcept {
        return record_ ? (*record_)->totals : *const_cast<statistics::BudgetTotals*>(&ended_);
    }
    std::size_t limit(bool may_pass_soft) const noexcept;
    std::size_t room(bool may_pass_soft) const noexcept;
    std::size_t allowed(bool may_pass_soft) const noexcept;
    std::size_t allowed_beyond_reserved(bool may_pass_soft) const noexcept;
    bool fits(const limits::BudgetRequest& request) const noexcept;
    void charge_up(std::size_t bytes, bool uses_reserved) noexcept;
    void refund_up(std::size_t bytes) noexcept;
    void note_refusal(limits::BudgetRequest& request) noexcept;
    void link(BudgetNode* parent) noexcept;
    void unlink() noexcept;
    static void drop_unused(BudgetNode* node) noexcept;
    HolderEntry* next_holder(const HolderPosition* after) const noexcept;
    void count_holders(int more) noexcept;
    std::size_t ask(HolderEntry& entry, std::size_t bytes,
                    std::unique_lock<std::mutex>& lock) noexcept;
    void describe_level(base::FixedText& text, bool has_refused) const noexcept;
    void list_holders(base::FixedText& text) const noexcept;

    BudgetNode* parent_ = nullptr;
    BudgetNode* children_ = nullptr;  // as the next two: a list without order
    BudgetNode* next_ = nullptr;
    BudgetNode* previous_ = nullptr;
    HolderEntry* holders_ = nullptr;
    unsigned holders_below_ = 0;  // its own included
    std::size_t holds_ = 0;
    std::size_t living_reservations_ = 0;  // bytes, with those that requests have used
    bool is_ended_ = false;
    std::optional<statistics::OwnedRecord<statistics::BudgetRecord>> record_;
    statistics::BudgetTotals ended_;  // the charge after the end
};

}  // namespace tensorpool::detail
