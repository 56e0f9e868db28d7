#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tensorpool::arena {

/// Which claims of an arena were cancelled (ArenaState tells what a claim is). A claim carries the
/// generation in which it was made, of which its arena's top has room for the low 16 bits; each
/// cancellation ends one. Cancelled are the claims of that generation that begin at or above the
/// place from which it cancelled; what begins below stands.
///
/// Until a release the places never go down, and where an arena is full they mostly stay, so runs
/// of generations that ended at one place are kept together, the last 64 of them. Of older ones all
/// claims count as cancelled: what they claimed is lost until a release, and nobody else's.
class CancelledClaims {
public:
    /// The present one, for the top.
    std::uint16_t generation() const noexcept { return static_cast<std::uint16_t>(generation_); }
    /// Ends the present generation at `from`.
    void cancel_from(std::size_t from) noexcept;
    /// Whether a claim of the generation, one of the last 65,536, that begins at `begin` was
    /// cancelled.
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
