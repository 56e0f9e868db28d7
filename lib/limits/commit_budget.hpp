#pragma once

#include <tensorpool/growth_policy.hpp>

#include "base/lockable.hpp"
#include "limits/budget_node.hpp"

namespace tensorpool::limits {

/// Limits how much memory the pools and arenas of this process commit together. Committed memory
/// counts whether it was touched or not. The limit is what the system and the container still have
/// available plus the part of tensorpool's memory that is already resident. The resident part is
/// not known exactly: it is at most what is committed and at most what the whole process has
/// resident. Memory that was never handed out, or that is kept out of memory, does not prevent an
/// allocation for which memory is available. Thread-safe. The process has one budget, which
/// `commit_budget` returns.
class CommitBudget : public base::Lockable {
public:
    /// Where the budget reads the state of the system. Tests replace it.
    struct Source {
        std::size_t (*available)() noexcept;
        std::size_t (*resident)() noexcept;
        // Committed bytes that were never handed out and therefore never touched.
        std::size_t (*untouched)() noexcept;
    };
    explicit constexpr CommitBudget(Source source) noexcept : source_(source) {}

    /// Takes at least `needed` bytes, and up to `wanted` bytes as far as `fraction` of the memory
    /// allows. Returns the bytes taken, which are a multiple of `unit` if `needed` is one. Returns
    /// 0 if not even `needed` bytes are available.
    std::size_t take(std::size_t needed, std::size_t wanted, double fraction,
                     std::size_t unit) noexcept;
    void give_back(std::size_t bytes) noexcept {
        const std::size_t before = committed_.fetch_sub(bytes, std::memory_order_relaxed);
        base::lower_to(lowest_, before - bytes);
    }

    /// Counts committed bytes whose pages are gone, and will not come back all at once.
    void keep_out(std::size_t bytes) noexcept {
        kept_out_.fetch_add(bytes, std::memory_order_relaxed);
    }
    void let_in(std::size_t bytes) noexcept {
        kept_out_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    std::size_t kept_out() const noexcept { return kept_out_.load(std::memory_order_relaxed); }

    /// Returns whether at least `bytes` are available to the process and to others. Reads the
    /// system's files at most ten times a second while much more is available.
    bool has_available(std::size_t bytes, std::uint64_t now_ns) noexcept;
    /// Returns how many bytes are available to the process and to others. Reads the system's files.
    std::size_t available() const noexcept { return source_.available(); }

    std::size_t committed() const noexcept { return committed_.load(std::memory_order_relaxed); }
    /// Returns the most bytes that tensorpool may have committed in total, as last read from the
    /// system.
    std::size_t ceiling() const noexcept { return ceiling_.load(std::memory_order_relaxed); }
    /// Describes why `needed` more bytes could not be committed. `system_refused` is true if the
    /// system refused to commit them, and false if the budget did not permit the attempt.
    base::Refusal refuse(std::size_t needed, bool system_refused) const noexcept;
    /// Returns whether less than a sixteenth of the process's present and available memory is left.
    bool short_of_memory() const noexcept { return missing_bytes(16) != 0; }
    /// Returns how many bytes more should be available so that one part in `part` of the process's
    /// present and available memory is left.
    std::size_t missing_bytes(std::size_t part) const noexcept;

private:
    void look(std::size_t committed) noexcept;
    bool has_room_for(std::size_t needed) noexcept;
    std::size_t room(std::size_t committed, double fraction) const noexcept;

    Source source_;
    // Relaxed: sums that order nothing. Growth itself happens under the mutex.
    std::atomic<std::size_t> committed_ = 0;
    std::atomic<std::size_t> kept_out_ = 0;
    // What `has_available` read last, and when. Relaxed: an older value only causes another look.
    std::atomic<std::size_t> recently_available_ = 0;
    std::atomic<std::uint64_t> read_ns_ = 0;
    std::atomic<std::size_t> ceiling_ = 0;
    // Reading the system's files takes tens of microseconds. It is therefore repeated only when the
    // committed bytes exceed their lowest value since the last reading by a sixty-fourth of what
    // was left then. The lowest value counts because other processes may have taken memory that was
    // released.
    std::atomic<std::uint64_t> lowest_ = 0;
    std::size_t look_again_after_ = 0;
};

CommitBudget& commit_budget() noexcept;

/// Where one pool or arena charges the memory that it commits: its budget, if it has one, and then
/// the commit budget of the process. Thread-safe.
class CommitAccount {
public:
    explicit CommitAccount(CommitBudget& process, BudgetNode* budget = nullptr) noexcept
        : process_(process), budget_(budget) {}

    /// Does what CommitBudget::take does, within the limits of the budget as well. If the budget
    /// refuses, `request` says so.
    std::size_t take(std::size_t needed, std::size_t wanted, double fraction, std::size_t unit,
                     BudgetRequest& request) noexcept {
        if (budget() == nullptr) [[likely]]
            return process_.take(needed, wanted, fraction, unit);
        const std::size_t charged = budget()->charge(needed, wanted, unit, request);
        if (charged == 0) return 0;
        const std::size_t taken = process_.take(needed, charged, fraction, unit);
        budget_.refund(charged - taken);
        return taken;
    }
    /// Takes bytes like `take` and calls `get(bytes)`, which gets them from the system. If `get`
    /// returns false, the system has less than it reported: the surplus is given back and
    /// `get(needed)` is tried. Returns the bytes obtained. Returns 0, and takes nothing, if
    /// `needed` bytes could not be obtained either.
    template <class Get>
    std::size_t take_and_get(std::size_t needed, std::size_t wanted, double fraction,
                             std::size_t unit, BudgetRequest& request, Get get) noexcept {
        const std::size_t taken = take(needed, wanted, fraction, unit, request);
        if (taken == 0 || get(taken)) return taken;
        give_back(taken - needed);
        if (taken != needed && get(needed)) return needed;
        give_back(needed);
        return 0;
    }
    void give_back(std::size_t bytes) noexcept {
        process_.give_back(bytes);
        budget_.refund(bytes);
    }
    /// Describes why `needed` more bytes could not be taken; see CommitBudget::refuse.
    base::Refusal refuse(std::size_t needed, bool system_refused,
                         const BudgetRequest& request) const noexcept {
        return request.is_refused() ? request.refusal() : process_.refuse(needed, system_refused);
    }
    BudgetNode* budget() const noexcept { return budget_.node(); }

private:
    CommitBudget& process_;
    const HeldBudget budget_;
};

}  // namespace tensorpool::limits
