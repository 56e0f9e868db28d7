#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace tensorpool::arena {

/// The releases of one arena, as far as a mark needs them. Numbers begin with 1.
///
/// A mark is stale if a release with a later number went below its offset. Of two releases, the
/// earlier one matters only if the later one went less far down. So the kept releases have
/// increasing offsets and increasing numbers, and marks are not recorded anywhere.
///
/// One thread at a time adds releases. `sequence` may be read while another thread adds one.
class ReleaseHistory {
public:
    /// Allocates room for the first release, so that a reset never fails.
    ReleaseHistory() { releases_.reserve(1); }

    /// Returns the number of releases so far, which a new mark carries.
    std::uint64_t count() const noexcept { return sequence() / 2; }
    /// Adds a release to `offset`.
    void add(std::size_t offset) noexcept {
        begin_release();
        finish_release(offset);
    }

    /// Returns twice the number of releases, plus 1 while a release is under way. Acquire: a thread
    /// that reads an even value sees the arena as that release left it.
    std::uint64_t sequence() const noexcept { return sequence_.load(std::memory_order_acquire); }
    static bool is_release_under_way(std::uint64_t sequence) noexcept { return sequence % 2 != 0; }
    /// Announces a release, before it changes the arena.
    void begin_release() noexcept {
        sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    /// Adds the release that was begun.
    void finish_release(std::size_t offset) noexcept {
        const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed) + 1;
        const std::uint64_t number = sequence / 2;
        while (!releases_.empty() && releases_.back().offset >= offset) releases_.pop_back();
        try {
            releases_.push_back({offset, number});
        } catch (const std::bad_alloc&) {
            // Without memory for a record, this release extends the previous one: a mark made
            // between the two is then reported as stale although it is valid. The opposite error
            // would be worse.
            releases_.back().number = number;
        }
        sequence_.store(sequence, std::memory_order_release);
    }
    /// Takes the announcement back: nothing was released.
    void cancel_release() noexcept {
        sequence_.store(sequence_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }

    /// Returns whether a release after the first `releases` went below `offset`.
    bool went_below(std::size_t offset, std::uint64_t releases) const noexcept {
        const auto later = std::upper_bound(
            releases_.begin(), releases_.end(), releases,
            [](std::uint64_t number, const Release& release) { return number < release.number; });
        return later != releases_.end() && later->offset < offset;
    }

private:
    struct Release {
        std::size_t offset;
        std::uint64_t number;
    };
    std::vector<Release> releases_;
    std::atomic<std::uint64_t> sequence_ = 0;
};

/// The cancelled claims of an arena (ArenaState describes claims). A claim carries the low 16 bits
/// of the generation in which it was made, since its arena's top has no room for more. Each
/// cancellation ends a generation at an offset: claims of that generation that begin at or above
/// the offset are cancelled, and claims that begin below stand.
///
/// Until a release, the offsets never decrease, and in a full arena they mostly stay the same. So
/// runs of generations that ended at one offset are kept together; the last 64 runs are kept. All
/// claims of older generations count as cancelled: their bytes are lost until a release, but are
/// never given to another thread.
class CancelledClaims {
public:
    /// Returns the current generation, for the top.
    std::uint16_t generation() const noexcept { return static_cast<std::uint16_t>(generation_); }
    /// Ends the current generation at `from`.
    void cancel_from(std::size_t from) noexcept {
        const bool goes_on = run_count_ != 0 && run(run_count_ - 1).from == from;
        if (!goes_on) runs_[run_count_++ % max_runs] = {generation_, from};
        ++generation_;
    }
    /// Returns whether a claim that begins at `begin` was cancelled. REQUIRES: `generation` is one
    /// of the last 65,536.
    bool contains(std::uint16_t generation, std::size_t begin) const noexcept;

private:
    struct Run {
        std::uint64_t first;  // it ends where the next one begins
        std::size_t from;
    };
    static constexpr std::uint64_t max_runs = 64;

    const Run& run(std::uint64_t number) const noexcept { return runs_[number % max_runs]; }

    std::array<Run, max_runs> runs_ = {};
    std::uint64_t run_count_ = 0;
    std::uint64_t generation_ = 0;
};

}  // namespace tensorpool::arena
