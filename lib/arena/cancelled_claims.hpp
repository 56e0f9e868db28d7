#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tensorpool::arena {

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
    void cancel_from(std::size_t from) noexcept;
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
