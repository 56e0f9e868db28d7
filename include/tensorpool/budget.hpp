#pragma once

/// @file
/// Limits for parts of a program: a tree of named budgets, and the holders that make room in them.
/// All sizes are bytes.

#include <cstddef>
#include <utility>
#include <vector>

#include <tensorpool/budget_statistics.hpp>

namespace tensorpool {

namespace detail {
class BudgetNode;
struct HolderEntry;
}  // namespace detail

/// The limits of a budget. 0 means no limit.
struct BudgetLimits {
    /// Before the charge exceeds it, registered holders are asked to give memory. The request
    /// succeeds even if they give too little.
    std::size_t soft = 0;
    /// The charge never exceeds it. Before a request is refused, registered holders are asked to
    /// give memory.
    std::size_t hard = 0;
};

/// Something that can give memory when a budget needs it, such as a cache.
///
/// It is also asked when the machine, or the control group of the process, is short of memory:
/// slow paths of requests to pools look for that at most ten times a second, frees never.
///
/// Any thread may call these functions at any time between registration and its end, one thread at
/// a time. The caller holds no lock of the library, but the thread may be inside a request for
/// memory that the holder itself made. So they must not wait for a lock that is held around such
/// requests: they try it, and give nothing if it is taken. They must not wait for a thread that
/// allocates, nor end the registration of another holder. They may allocate.
class TENSORPOOL_API MemoryHolder {
public:
    virtual ~MemoryHolder() = default;
    /// Returns an estimate of the bytes that `give` could free now.
    virtual std::size_t available() const noexcept = 0;
    /// Frees about `bytes` bytes and returns how many it freed. A holder that returns more
    /// than that is asked a limited number of times, and then the request is refused.
    virtual std::size_t give(std::size_t bytes) noexcept = 0;
};

/// When a holder is asked.
struct HolderOptions {
    /// The name shown in messages.
    std::string name = "holder";
    /// Holders with lower numbers are asked first.
    int priority = 0;
    /// Among holders of one priority, those with the lowest cost are asked first: what it costs to
    /// get a byte back, in any unit that they share.
    double cost_per_byte = 0;
};

/// The registration of a holder. It ends with this object, which waits until no thread asks the
/// holder. Moving it keeps the registration.
class TENSORPOOL_API HolderRegistration {
public:
    HolderRegistration() noexcept = default;
    /// Takes the registration of `other`, which then has none.
    HolderRegistration(HolderRegistration&& other) noexcept
        : entry_(std::exchange(other.entry_, nullptr)) {}
    /// Exchanges the registrations.
    HolderRegistration& operator=(HolderRegistration&& other) noexcept {
        std::swap(entry_, other.entry_);
        return *this;
    }
    ~HolderRegistration();

private:
    friend class Budget;
    explicit HolderRegistration(detail::HolderEntry* entry) noexcept : entry_(entry) {}
    detail::HolderEntry* entry_ = nullptr;
};

/// A named limit for a part of a program, in a tree such as process, subsystem, request.
///
/// What is charged to a budget is charged to its parents as well. Pools, arenas, contexts, planned
/// arenas and the allocators of device and pinned memory charge the bytes that they commit to the
/// budget in their options. A BudgetScope charges what a thread takes from pools, arenas, scratches
/// and plans without a budget. The machine's memory remains the limit above all roots.
///
/// A budget may end before what is charged to it: the charges then remain with its parent, and its
/// limits no longer count. Thread-safe; neither copied nor moved.
class TENSORPOOL_API Budget {
public:
    /// Makes a root. At most 47 bytes of the name are kept. Throws std::invalid_argument if the
    /// soft limit exceeds the hard one or a limit exceeds 2^60, which a negative number becomes.
    explicit Budget(std::string name, BudgetLimits limits = {});
    /// Makes a budget below `parent`. Throws like the constructor of a root.
    Budget(Budget& parent, std::string name, BudgetLimits limits = {});
    Budget(const Budget&) = delete;
    Budget& operator=(const Budget&) = delete;
    ~Budget();

    /// Returns whether `bytes` more could be charged now without exceeding a hard limit of this
    /// budget or one above it. Asks no holder.
    bool would_fit(std::size_t bytes) const noexcept;
    /// Returns the bytes charged to this budget and those below it.
    std::size_t in_use() const noexcept;
    /// Returns the limits.
    BudgetLimits limits() const noexcept;
    /// Changes the limits. If the charge exceeds them, holders are asked to give the difference,
    /// and nothing more is charged until the charge is below the hard limit. Throws like the
    /// constructor, and changes nothing then.
    void set_limits(BudgetLimits limits);
    /// Registers a holder, which is asked when this budget or one above it needs memory. `holder`
    /// must outlive the registration. Throws std::bad_alloc if there is no memory.
    ///
    /// While there are holders, slow paths of requests look for pressure in the system. Where
    /// control groups of version 1 report it, the first look opens a descriptor for that, which
    /// exec closes.
    [[nodiscard]] HolderRegistration add_holder(MemoryHolder& holder, HolderOptions options = {});
    /// Asks holders of this budget and those below it for `bytes` bytes. Returns what they gave.
    std::size_t reclaim(std::size_t bytes) noexcept;
    /// Returns the budget's state.
    BudgetStatistics statistics() const noexcept;
    /// Returns the name.
    const std::string& name() const noexcept { return name_; }

private:
    friend class BudgetScope;
    friend struct BudgetAccess;
    Budget(detail::BudgetNode* parent, std::string&& name, BudgetLimits limits);

    std::string name_;
    detail::BudgetNode* node_;
};

/// Charges what the calling thread allocates to a budget, until this object ends.
///
/// Charged are the usable bytes of the blocks of all pools that have no budget of their own, until
/// the blocks are freed, on whichever thread. Free blocks that the thread keeps for its next
/// allocations are charged as well; they are returned at the end of the scope, and before a request
/// is refused. Of nested scopes only the innermost charges. A block that is resized inside a scope,
/// also one that stays in place, is charged and refused like a new one, and its former charge ends.
/// Outside of any scope, a charged block keeps its charge if it stays in place when it is resized;
/// if it moves, no budget is charged for it any more. Frees of charged blocks, and all frees inside
/// a scope, take some nanoseconds more; other threads and blocks are not affected.
///
/// Arenas (also those of contexts) and scratches without a budget charge the memory by which they
/// grow in the scope, until they give it back. The memory of a plan is charged while an iteration
/// that began in the scope, or later ones, use it (PlannedArenaOptions). The guide has a table of
/// all that a budget counts.
///
/// An automatic variable: it ends on its own thread, before the scope around it. The budget may end
/// first.
class TENSORPOOL_API BudgetScope {
public:
    /// Begins the scope.
    explicit BudgetScope(Budget& budget) noexcept;
    BudgetScope(const BudgetScope&) = delete;
    BudgetScope& operator=(const BudgetScope&) = delete;
    /// Ends the scope.
    ~BudgetScope();

private:
    static void* operator new(std::size_t) = delete;
    detail::BudgetNode* node_;
    detail::BudgetNode* outer_;
};

/// Returns what is wrong with a file of budgets, such as the one that TENSORPOOL_BUDGETS names
/// (pool_options.hpp): for each bad line its number, what was found and what was expected. Returns
/// nothing if the file is valid. Throws std::bad_alloc if there is no memory.
TENSORPOOL_API std::vector<std::string> check_budget_file(const std::string& path);

/// Gives the library's other layers the implementation of a budget.
struct BudgetAccess {
    /// Returns nullptr for a null pointer.
    static detail::BudgetNode* node_of(const Budget* budget) noexcept {
        return budget == nullptr ? nullptr : budget->node_;
    }
};

}  // namespace tensorpool
