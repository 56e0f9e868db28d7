#pragma once

/// @file
/// The blocks of one process, and the order in which they are allocated and freed.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/recording.hpp"

namespace tensorpool::command::replay {

class LifetimeOrder {
public:
    /// Throws CommandError if a block exceeds the limits of Step.
    LifetimeOrder(const trace::Recording& recording, std::uint32_t process);

    const std::vector<trace::Lifetime>& lifetimes() const noexcept { return lifetimes_; }

    /// Calls `begin` and `end` with indices of `lives()` in the order of time. Blocks from before
    /// the recording come first. The ends of a call come before its beginnings.
    template <class Begin, class End>
    void walk(Begin begin, End end) const {
        std::size_t next = 0;
        std::size_t next_end = 0;
        while (next < lifetimes_.size() && lifetimes_[next].begin == trace::Lifetime::none)
            begin(next++);
        while (next < lifetimes_.size() || next_end < ends_.size()) {
            if (next_end < ends_.size() &&
                (next == lifetimes_.size() ||
                 lifetimes_[ends_[next_end]].end <= lifetimes_[next].begin)) {
                end(ends_[next_end++]);
            } else {
                begin(next++);
            }
        }
    }

private:
    std::vector<trace::Lifetime> lifetimes_;  // sorted by their beginnings
    std::vector<std::size_t> ends_;           // indices of `lives_`, sorted by their ends
};

}  // namespace tensorpool::command::replay
