#pragma once

#include <cstdint>

#include "plan/planner/search_order.hpp"

namespace tensorpool::planner {

/// One run of the search.
struct SearchTurn {
    SearchOrder order;
    bool noisy;
    bool first_with_noise;  ///< this run is the first of those that share one draw
    std::uint64_t nodes;
};

/// A sequence of search runs of growing length. In each round every order runs without noise, with
/// twice the nodes of the round before, until a run is exhaustive. After each round there are short
/// runs with noise, which find packings that no plain order finds. A search that fails late because
/// of an early choice is better restarted than continued (Gomes, Selman and Kautz, "Boosting
/// combinatorial search through randomization", 1998).
class SearchSchedule {
public:
    explicit SearchSchedule(std::size_t buffers) noexcept;

    /// Returns the current run.
    SearchTurn turn() const noexcept;
    /// Moves on to the next run.
    void advance() noexcept;

private:
    std::uint64_t nodes_;
    std::uint64_t round_ = 0;
    std::uint64_t noisy_ = 0;       // draws so far
    std::uint64_t noisy_left_ = 0;  // draws left in this round; 0: the orders run without noise
    std::size_t order_ = 0;
};

}  // namespace tensorpool::planner
