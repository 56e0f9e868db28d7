#pragma once

#include <compare>

#include "base/block_mark.hpp"
#include "base/never_destroyed.hpp"
#include "base/registry.hpp"
#include "limits/budget_file.hpp"
#include "limits/budget_request.hpp"
#include "limits/budget_table.hpp"
#include "statistics/records/record_values.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::detail {

/// Where a holder stands in the order in which holders are asked.
struct HolderPosition {
    int priority = 0;
    double cost_per_byte = 0;
    std::size_t number = 0;  // of the registration; no other holder has it

    auto operator<=>(const HolderPosition&) const = default;
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

}  // namespace tensorpool::detail

namespace tensorpool::limits {

using detail::HolderEntry;
using detail::HolderPosition;

/// The holders of one budget. Guarded by the lock of all budgets.
struct HolderList {
    HolderEntry* first = nullptr;
    unsigned below = 0;  // the number of its own holders and of those of all budgets below it
};

/// Whether the calling thread is inside a holder that a budget asks.
bool is_inside_holder() noexcept;

/// Returns nullptr if there is no memory.
HolderEntry* add_holder(BudgetNode& budget, MemoryHolder& holder,
                        const HolderOptions& options) noexcept;
void remove_holder(HolderEntry& entry) noexcept;

/// Asks the holders of a budget and of those below it, in their order, until they have given
/// `bytes`, or until `request` would fit if it is not nullptr. Returns what they gave. The caller
/// holds no lock. Returns 0 if the calling thread is inside a holder.
std::size_t ask_holders(BudgetNode& budget, std::size_t bytes,
                        BudgetRequest* request = nullptr) noexcept;

/// Returns the first holder of a budget and of those below it, or the first one behind a position;
/// nullptr if there is none. REQUIRES: the lock of all budgets is held.
HolderEntry* next_holder(const BudgetNode& budget, const HolderPosition* after) noexcept;

/// Called in the child of a fork: other threads that were asking holders of this budget, or of one
/// below it, do not exist there. REQUIRES: the lock of all budgets is held.
void forget_askers(BudgetNode& budget) noexcept;

/// All budgets of the process. The lock guards every member of every budget. It comes after the
/// locks of pools, arenas and the commit budget, and before the segment's.
struct Budgets {
    std::mutex naming_mutex;  // taken before `mutex`
    BudgetTable named;  // guarded by naming_mutex until named_budgets says that it is complete
    std::mutex mutex;
    std::atomic<bool> were_used = false;     // relaxed: set before a budget exists
    bool is_fork_locked = false;             // by the fork in progress
    std::atomic<unsigned> holder_count = 0;  // relaxed: a hint
    // Guarded by mutex:
    detail::BudgetNode* roots = nullptr;
    std::size_t registrations = 0;  // of holders, so far
    statistics::SlabList<detail::BudgetNode> free_nodes;
    statistics::SlabList<detail::HolderEntry> free_holders;
};

inline Budgets& budgets() noexcept {
    return base::the_only<Budgets>.get();
}

/// Whether the file in TENSORPOOL_BUDGETS sets budgets for pools and scopes by their names. These
/// budgets never end.
enum class NamedBudgets : std::uint8_t { unread, none, some };

/// Acquire and release: the table is complete before it is found.
extern constinit std::atomic<NamedBudgets> named_budgets;

/// Reads the file, once. Bad lines are reported on stderr. REQUIRES: the caller holds no lock.
void read_named_budgets_slow() noexcept;
inline void read_named_budgets() noexcept {
    if (named_budgets.load(std::memory_order_acquire) == NamedBudgets::unread) [[unlikely]]
        read_named_budgets_slow();
}

/// Returns the budget for a pool or scope of this name; nullptr if the file has none, or was not
/// read yet.
detail::BudgetNode* find_named_budget(BudgetSubject subject, std::string_view name) noexcept;

/// The limits of one budget and what is charged to it. The segment shows it from `open` to `end`.
/// Afterwards there are no limits, but what was charged stays so until it is refunded. Guarded by
/// the lock of all budgets.
class BudgetCounters {
public:
    /// Returns false if there is no memory.
    bool open(std::string_view name, const BudgetCounters* parent, BudgetLimits limits) noexcept {
        record_.emplace(name, [&](statistics::BudgetRecord& record) {
            if (parent != nullptr) base::write(record.parent, base::read((*parent->record_)->id));
            base::write(record.totals.soft_bytes, limits.soft);
            base::write(record.totals.hard_bytes, limits.hard);
        });
        if (!*record_) record_.reset();
        return !is_ended();
    }
    void end() noexcept {
        base::write(ended_.in_use_bytes, in_use());
        record_->leave();
        record_.reset();
    }
    bool is_ended() const noexcept { return !record_; }

    std::size_t in_use() const noexcept { return base::read(totals().in_use_bytes); }
    /// Returns the limit for requests that may pass the soft limit, or that may not; SIZE_MAX if
    /// there is none.
    std::size_t limit(bool may_pass_soft) const noexcept {
        if (is_ended()) return SIZE_MAX;
        const std::size_t soft = base::read(totals().soft_bytes);
        if (soft != 0 && !may_pass_soft) return soft;
        const std::size_t hard = base::read(totals().hard_bytes);
        return hard == 0 ? SIZE_MAX : hard;
    }
    void set_limits(BudgetLimits limits) noexcept {
        base::write(totals().soft_bytes, limits.soft);
        base::write(totals().hard_bytes, limits.hard);
    }

    void charge(std::size_t bytes) noexcept {
        detail::add(totals().in_use_bytes, bytes);
        base::raise_to(totals().peak_bytes, in_use());
    }
    void refund(std::size_t bytes) noexcept {
        base::write(totals().in_use_bytes, in_use() - bytes);
    }

    /// Counts what happened. After the end, it is not read.
    void count(detail::Counter statistics::BudgetTotals::*what, std::size_t more = 1) noexcept {
        detail::add(totals().*what, more);
    }
    BudgetStatistics statistics() const noexcept {
        return record_ ? statistics::statistics_of(**record_) : BudgetStatistics();
    }

private:
    const statistics::BudgetTotals& totals() const noexcept {
        return record_ ? (*record_)->totals : ended_;
    }
    statistics::BudgetTotals& totals() noexcept { return record_ ? (*record_)->totals : ended_; }

    std::optional<statistics::OwnedRecord<statistics::BudgetRecord>> record_;
    statistics::BudgetTotals ended_;  // the charge after the end
};

}  // namespace tensorpool::limits

namespace tensorpool::detail {

/// The implementation of a budget. It outlives its `Budget` while something is charged to it or
/// refers to it; its limits then no longer count, and its charges remain with its parents.
///
/// Invariant: a charge is part of the charges of all budgets above. The charge of a budget exceeds
/// its hard limit only if the limit was lowered below it. One lock, `Budgets::mutex`, guards all
/// budgets of the process; it is a leaf above the segment's, so charges can be made under any lock
/// of a pool or an arena.
///
/// It is the mark of each block that a scope charged to it.
class BudgetNode final : public base::BlockMark {
public:
    BudgetNode() noexcept = default;  // for SlabList; `open` begins its life

    /// Makes a budget below `parent`, or a root if that is nullptr. Returns nullptr if there is no
    /// memory.
    static BudgetNode* open(BudgetNode* parent, std::string_view name,
                            BudgetLimits limits) noexcept {
        const std::lock_guard guard(limits::budgets().mutex);
        limits::budgets().were_used.store(true, std::memory_order_relaxed);
        BudgetNode* const node = limits::budgets().free_nodes.take();
        if (node == nullptr) return nullptr;
        if (!node->counters.open(name, parent == nullptr ? nullptr : &parent->counters, limits)) {
            limits::budgets().free_nodes.give_back(*node);
            return nullptr;
        }
        node->parent = parent;
        base::link_in_front(node->siblings(), *node);
        if (parent != nullptr) parent->hold();
        return node;
    }
    void end() noexcept {
        const std::lock_guard guard(limits::budgets().mutex);
        counters.end();
        let_go_locked();
    }

    /// Keeps the object for something that charges it. REQUIRES: it is held, or not ended.
    void hold() noexcept { holds_.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept {
        if (!release()) return;
        const std::lock_guard guard(limits::budgets().mutex);
        drop_unused(this);
    }

    /// Charges at least `needed` bytes, and up to `wanted` bytes as far as the limits allow, in
    /// multiples of `unit` beyond `needed`. Returns the bytes charged. Returns 0, and charges
    /// nothing, if `needed` bytes would exceed a limit; `request` then says which.
    std::size_t charge(std::size_t needed, std::size_t wanted, std::size_t unit,
                       limits::BudgetRequest& request) noexcept {
        const std::lock_guard guard(limits::budgets().mutex);
        return charge_locked(needed, wanted, unit, request);
    }
    /// Moves a charge from one budget to another, either of which may be nullptr. Budgets that are
    /// above both keep their charge. Returns false, and changes nothing, if `to` refuses.
    static bool move_charge(BudgetNode* from, BudgetNode* to, std::size_t bytes,
                            limits::BudgetRequest& request) noexcept {
        if (bytes == 0) return true;
        const std::lock_guard guard(limits::budgets().mutex);
        const auto change = [&](void (limits::BudgetCounters::*step)(std::size_t) noexcept) {
            for (BudgetNode* node = from; node != nullptr; node = node->parent)
                (node->counters.*step)(bytes);
        };
        change(&limits::BudgetCounters::refund);
        const bool is_moved = to == nullptr || to->charge_locked(bytes, bytes, 1, request) != 0;
        if (!is_moved) change(&limits::BudgetCounters::charge);
        if (is_moved) drop_unused(from);
        return is_moved;
    }
    /// Like `charge`. REQUIRES: the lock of all budgets is held.
    std::size_t charge_locked(std::size_t needed, std::size_t wanted, std::size_t unit,
                              limits::BudgetRequest& request) noexcept {
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
    void refund(std::size_t bytes) noexcept {
        if (bytes == 0) return;
        const std::lock_guard guard(limits::budgets().mutex);
        for (BudgetNode* node = this; node != nullptr; node = node->parent) {
            node->counters.refund(bytes);
        }
        drop_unused(this);
    }
    void on_free(std::size_t bytes) noexcept override { refund(bytes); }
    BlockMark* charge() noexcept override { return this; }

    /// Returns whether it is `other` or below it.
    bool is_within(const BudgetNode& other) const noexcept {
        const std::lock_guard guard(limits::budgets().mutex);
        const BudgetNode* node = this;
        while (node != nullptr && node != &other) node = node->parent;
        return node != nullptr;
    }
    /// Returns the bytes above the new limits; those above the hard one if there is no holder.
    std::size_t set_limits(BudgetLimits limits) noexcept {
        const std::lock_guard guard(limits::budgets().mutex);
        counters.set_limits(limits);
        return counters.in_use() - std::min(counters.in_use(), limit(false));
    }
    BudgetStatistics statistics() const noexcept {
        const std::lock_guard guard(limits::budgets().mutex);
        return counters.statistics();
    }
    std::size_t in_use() const noexcept {
        const std::lock_guard guard(limits::budgets().mutex);
        return counters.in_use();
    }

    // REQUIRES, for all that follow: the lock of all budgets is held.
    // Where it stands in the tree of budgets, whose lists have no order.
    BudgetNode* parent = nullptr;
    BudgetNode* children = nullptr;
    BudgetNode* next = nullptr;
    BudgetNode* previous = nullptr;
    limits::BudgetCounters counters;
    limits::HolderList holders;
    /// Returns the limit of this budget alone; SIZE_MAX if there is none. Without a holder that
    /// could be asked, a soft limit has no effect.
    std::size_t limit(bool may_pass_soft) const noexcept {
        return counters.limit(may_pass_soft || holders.below == 0);
    }
    /// Returns the bytes up to that limit.
    std::size_t room(bool may_pass_soft) const noexcept {
        const std::size_t most = limit(may_pass_soft);
        return most == SIZE_MAX ? SIZE_MAX : most - std::min(most, counters.in_use());
    }
    /// Returns how many bytes its limits and those above allow now.
    std::size_t allowed(bool may_pass_soft) const noexcept {
        std::size_t most = SIZE_MAX;
        for (const BudgetNode* node = this; node != nullptr; node = node->parent)
            most = std::min(most, node->room(may_pass_soft));
        return most;
    }
    /// Like `let_go`.
    void let_go_locked() noexcept {
        if (release()) drop_unused(this);
    }

    BudgetNode* next_free = nullptr;

private:
    BudgetNode*& siblings() noexcept {
        return parent == nullptr ? limits::budgets().roots : parent->children;
    }
    static void drop_unused(BudgetNode* node) noexcept {
        while (node != nullptr && node->holds_.load(std::memory_order_relaxed) == 0 &&
               node->counters.in_use() == 0) {
            BudgetNode* const above = node->parent;
            base::unlink(node->siblings(), *node);
            if (above != nullptr) above->holds_.fetch_sub(1, std::memory_order_relaxed);
            node->holds_.store(1, std::memory_order_relaxed);
            limits::budgets().free_nodes.give_back(*node);
            node = above;
        }
    }
    bool release() noexcept { return holds_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

    // One is the budget's own until it ends. A free node has one too: a thread that released the
    // last one does not drop what another thread has already dropped.
    std::atomic<std::size_t> holds_ = 1;
};

}  // namespace tensorpool::detail

namespace tensorpool::limits {

/// The budget of the innermost BudgetScope of the calling thread, or nullptr.
extern constinit thread_local BudgetNode* scope_budget TENSORPOOL_INITIAL_EXEC;

/// Makes `now` the budget of the calling thread, or none if it is nullptr. REQUIRES: the caller
/// holds no lock.
void change_scope(BudgetNode* now) noexcept;

/// Sets what is called after `scope_budget` changed, always the same, before the first scope
/// begins.
void set_scope_hook(void (*scope_changed)() noexcept) noexcept;

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
    /// Charges like `charge`, and asks holders as `may_retry` does. The caller holds no lock.
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
