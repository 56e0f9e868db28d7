#pragma once

#include <cstdint>

#include "planner/search_order.hpp"

namespace tensorpool::planner {

/// One run of the search.
struct SearchTurn {
    SearchOrder order;
    bool noisy;
    bool first_with_noise;  ///< of the orders that share a draw
    std::uint64_t nodes;
};

/// Runs of growing length, in turns: each order as it is, twice as long in each round, until a run
/// sees all there is; and after each round, short runs with noise, which find what no order by
/// itself does. A search that fails late for a choice made early is better begun anew than gone on
/// with (Gomes, Selman and Kautz, "Boosting combinatorial search through randomization", 1998).
class SearchSchedule {
public:
    explicit SearchSchedule(std::size_t buffers) noexcept;

    SearchTurn turn() const noexcept;
    void advance() noexcept;

private:
    std::uint64_t nodes_;
    std::uint64_t round_ = 0;
    std::uint64_t noisy_ = 0;       // draws so far
    std::uint64_t noisy_left_ = 0;  // draws left in this round; 0: the orders as they are
    std::size_t order_ = 0;
};

}  // namespace tensorpool::planner
