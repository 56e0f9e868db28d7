#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include <tensorpool/growth_policy.hpp>

#include "base/atomics.hpp"
#include "base/refusal.hpp"

namespace tensorpool::statistics {

/// How much tensorpool has committed in this process, all pools and arenas together, touched or
/// not, against what it may have: what the system and the container still leave, plus what of it is
/// resident already. How much that is nobody tells: at most what is committed, and at most what the
/// whole process has resident. What nobody was handed yet keeps nobody from getting memory that is
/// there. Thread-safe; the only one is the process's.
class CommitBudget {
public:
    /// What the system has to say, so that a test can say something else.
    struct Source {
        std::size_t (*available)() noexcept;
        std::size_t (*resident)() noexcept;
        // Of what is committed: what nobody was handed yet, so that nobody touched it.
        std::size_t (*untouched)() noexcept;
    };
    explicit constexpr CommitBudget(Source source) noexcept : source_(source) {}

    /// Takes at least `needed` bytes, up to `wanted` as far as the policy's fraction of the memory
    /// allows. Returns the bytes taken, a multiple of `unit` when `needed` is one; 0 when not even
    /// `needed` are available.
    std::size_t take(std::size_t needed, std::size_t wanted, double fraction,
                     std::size_t unit) noexcept;
    /// Takes as above and has `get(bytes)` get so much from the system. Where that is false, the
    /// system has less than it said: the surplus goes back, and the bare need is tried. Returns the
    /// bytes got; 0, and nothing is taken, when not even that could be had.
    template <class Get>
    std::size_t take_and_get(std::size_t needed, std::size_t wanted, double fraction,
                             std::size_t unit, Get get) noexcept {
        const std::size_t taken = take(needed, wanted, fraction, unit);
        if (taken == 0 || get(taken)) return taken;
        give_back(taken - needed);
        if (taken != needed && get(needed)) return needed;
        give_back(needed);
        return 0;
    }
    void give_back(std::size_t bytes) noexcept {
        const std::size_t before = committed_.fetch_sub(bytes, std::memory_order_relaxed);
        base::lower_to(lowest_, before - bytes);
    }

    std::size_t committed() const noexcept { return committed_.load(std::memory_order_relaxed); }
    /// What tensorpool may have committed in all, as last seen.
    std::size_t ceiling() const noexcept { return ceiling_.load(std::memory_order_relaxed); }
    /// Why `needed` more bytes were not had: the system was asked and refused, or was not asked.
    base::Refusal refuse(std::size_t needed, bool was_asked) const noexcept;
    /// Less than a sixteenth of what the process has and may have is left to take.
    bool short_of_memory() const noexcept;

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    void look(std::size_t committed) noexcept;
    bool has_room_for(std::size_t needed) noexcept;
    std::size_t room(std::size_t committed, double fraction) const noexcept;

    Source source_;
    std::mutex mutex_;
    // Relaxed: sums that order nothing; growth itself happens under the mutex.
    std::atomic<std::size_t> committed_ = 0;
    std::atomic<std::size_t> ceiling_ = 0;
    // Reading the system's files takes tens of microseconds, so it is done again only when so much
    // more is committed than at the lowest since: a sixty-fourth of what was left then. Where much
    // was given back, others may have taken it.
    std::atomic<std::uint64_t> lowest_ = 0;
    std::size_t look_again_after_ = 0;
};

CommitBudget& commit_budget() noexcept;

}  // namespace tensorpool::statistics
