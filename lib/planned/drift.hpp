#pragma once

#include <algorithm>
#include <cstdint>

namespace tensorpool::planned {

/// Whether a plan still holds, by what it missed.
class Drift {
public:
    /// An iteration drifts when it misses more than `tolerated` of the buffers; `iterations` of
    /// them in a row, 1 at least, are too many.
    Drift(double tolerated, unsigned iterations) noexcept
        : tolerated_(tolerated), iterations_(iterations) {}

    /// An iteration ended. True when the plan should be given up.
    bool note_iteration(std::uint64_t missed, std::uint64_t buffers) noexcept {
        if (static_cast<double>(missed) <= tolerated_ * static_cast<double>(buffers)) {
            in_a_row_ = 0;
            doublings_ = 0;
            return false;
        }
        return ++in_a_row_ >= std::uint64_t{iterations_} << doublings_;
    }
    /// The plan was given up: one that comes may be worth as little.
    void note_end() noexcept {
        in_a_row_ = 0;
        doublings_ = std::min(doublings_ + 1, max_doublings);
    }
    /// Begins anew.
    void forget() noexcept { in_a_row_ = doublings_ = 0; }

private:
    static constexpr unsigned max_doublings = 6;
    double tolerated_;
    unsigned iterations_;
    unsigned in_a_row_ = 0;
    unsigned doublings_ = 0;
};

}  // namespace tensorpool::planned
