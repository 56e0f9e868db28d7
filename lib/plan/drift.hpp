#pragma once

#include <algorithm>
#include <cstdint>

namespace tensorpool::planned {

/// Decides from the misses of each iteration whether a plan is still worth keeping.
class Drift {
public:
    /// An iteration drifts if it misses more than the fraction `tolerated` of the buffers. After
    /// `iterations` drifting iterations in a row, at least 1, the plan should be given up.
    Drift(double tolerated, unsigned iterations) noexcept
        : tolerated_(tolerated), iterations_(iterations) {}

    /// Records the end of an iteration. Returns true if the plan should be given up.
    bool note_iteration(std::uint64_t missed, std::uint64_t buffers) noexcept {
        if (static_cast<double>(missed) <= tolerated_ * static_cast<double>(buffers)) {
            in_a_row_ = 0;
            doublings_ = 0;
            return false;
        }
        return ++in_a_row_ >= std::uint64_t{iterations_} << doublings_;
    }
    /// Records that the plan was given up. The next one may be no better, so the limit doubles.
    void note_end() noexcept {
        in_a_row_ = 0;
        doublings_ = std::min(doublings_ + 1, max_doublings);
    }
    /// Resets all counts.
    void forget() noexcept { in_a_row_ = doublings_ = 0; }

private:
    static constexpr unsigned max_doublings = 6;
    double tolerated_;
    unsigned iterations_;
    unsigned in_a_row_ = 0;
    unsigned doublings_ = 0;
};

}  // namespace tensorpool::planned
