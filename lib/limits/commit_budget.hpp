#pragma once

#include <tensorpool/detail/saturating.hpp>
#include <tensorpool/growth_policy.hpp>

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
                     std::size_t unit) noexcept {
        const std::lock_guard guard(mutex_);
        const std::size_t committed = committed_.load(std::memory_order_relaxed);
        const std::size_t lowest = lowest_.load(std::memory_order_relaxed);
        if (committed + needed >= detail::sum(lowest, look_again_after_)) look(committed);
        if (room(committed, 1.0) < needed && !has_room_for(needed)) return 0;
        const std::size_t surplus_ends = base::align_down(room(committed, fraction), unit);
        const std::size_t taken = std::max(needed, std::min(wanted, surplus_ends));
        committed_.fetch_add(taken, std::memory_order_relaxed);
        return taken;
    }
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
    bool has_available(std::size_t bytes, std::uint64_t now_ns) noexcept {
        constexpr std::uint64_t pause_ns = 100'000'000;
        const std::uint64_t age_ns = now_ns - read_ns_.load(std::memory_order_relaxed);
        const std::size_t recently = recently_available_.load(std::memory_order_relaxed);
        if (age_ns < pause_ns && recently / 4 >= bytes) return true;
        const std::size_t now = source_.available();
        recently_available_.store(now, std::memory_order_relaxed);
        read_ns_.store(now_ns, std::memory_order_relaxed);
        return now >= bytes;
    }
    /// Returns how many bytes are available to the process and to others. Reads the system's files.
    std::size_t available() const noexcept { return source_.available(); }

    std::size_t committed() const noexcept { return committed_.load(std::memory_order_relaxed); }
    /// Returns the most bytes that tensorpool may have committed in total, as last read from the
    /// system.
    std::size_t ceiling() const noexcept { return ceiling_.load(std::memory_order_relaxed); }
    /// Describes why `needed` more bytes could not be committed. `system_refused` is true if the
    /// system refused to commit them, and false if the budget did not permit the attempt.
    base::Refusal refuse(std::size_t needed, bool system_refused) const noexcept {
        if (system_refused) {
            base::Refusal refusal = {"what the system commits", ceiling()};
            refusal.advice =
                "the system refused to commit so much; see `ulimit -v`, and "
                "vm.overcommit_memory with CommitLimit in /proc/meminfo";
            return refusal;
        }
        base::Refusal refusal = {"available memory", ceiling()};
        const std::size_t wanted = detail::sum(committed(), needed);
        // If the limit is no longer exceeded, another thread has released memory in the meantime.
        if (wanted > refusal.limit_bytes) {
            refusal.needed_limit = wanted;
            refusal.missing = wanted - refusal.limit_bytes;
        }
        return refusal;
    }
    /// Returns whether less than a sixteenth of the process's present and available memory is left.
    bool short_of_memory() const noexcept { return missing_bytes(16) != 0; }
    /// Returns how many bytes more should be available so that one part in `part` of the process's
    /// present and available memory is left.
    std::size_t missing_bytes(std::size_t part) const noexcept {
        const std::size_t available = source_.available();
        const std::size_t least = detail::sum(available, source_.resident()) / part;
        return least - std::min(least, available);
    }

private:
    void look(std::size_t committed) noexcept {
        const std::size_t available = source_.available();
        // Resident memory that is not this library's reduces what is available to it. At most the
        // committed bytes can be this library's.
        const std::size_t ours = std::min(source_.resident(), committed);
        ceiling_.store(detail::sum(available, ours), std::memory_order_relaxed);
        look_again_after_ = available / 64;
        lowest_.store(committed, std::memory_order_relaxed);
        base::lower_to(lowest_, committed_.load(std::memory_order_relaxed));
    }
    // Reads the system's values again and does not count memory that was never handed out, nor what
    // is kept out of memory.
    bool has_room_for(std::size_t needed) noexcept {
        const std::size_t committed = committed_.load(std::memory_order_relaxed);
        const std::size_t gone = source_.untouched() + kept_out();
        const std::size_t charged = committed - std::min(committed, gone);
        look(charged);
        return room(charged, 1.0) >= needed;
    }
    std::size_t room(std::size_t committed, double fraction) const noexcept {
        const std::size_t ceiling = ceiling_.load(std::memory_order_relaxed);
        // The whole ceiling is not computed as a double: SIZE_MAX would round up to a value that
        // does not fit in a size.
        const std::size_t allowed =
            fraction >= 1.0 ? ceiling
                            : static_cast<std::size_t>(static_cast<double>(ceiling) * fraction);
        return allowed > committed ? allowed - committed : 0;
    }

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

/// What arenas and others were charged for, and have neither handed out nor touched.
inline std::size_t untouched_bytes() noexcept {
    return statistics::sum_of("untouched_bytes");
}

inline constinit CommitBudget the_budget({platform::committable_memory, platform::resident_memory,
                                          untouched_bytes});

inline CommitBudget& commit_budget() noexcept {
    return the_budget;
}

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
