#include "plan/planner/search_schedule.hpp"

#include <algorithm>
#include <bit>

namespace tensorpool::planner {
namespace {

constexpr std::uint64_t max_doublings = 40;
// Among 1, 2, 4, 6 and 8, the value with which MiniMalloc's instances need the fewest steps.
constexpr std::uint64_t nodes_a_buffer = 4;

// Luby, Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms" (1993): 1 1 2 1 1 2 4 …
std::uint64_t luby(std::uint64_t i) noexcept {
    while (!std::has_single_bit(i + 1)) i -= std::bit_floor(i) - 1;
    return (i + 1) / 2;
}

}  // namespace

SearchSchedule::SearchSchedule(std::size_t buffers) noexcept
    : nodes_(nodes_a_buffer * std::max<std::uint64_t>(buffers, 64)) {}

SearchTurn SearchSchedule::turn() const noexcept {
    const bool noisy = noisy_left_ != 0;
    return {.order = all_search_orders[order_],
            .noisy = noisy,
            .first_with_noise = noisy && order_ == 0,
            .nodes = noisy ? nodes_ * luby(noisy_) : nodes_ << std::min(round_, max_doublings)};
}

void SearchSchedule::advance() noexcept {
    if (++order_ < all_search_orders.size()) return;
    order_ = 0;
    if (noisy_left_ == 0) {
        noisy_left_ = std::uint64_t{1} << std::min(round_, max_doublings);
        ++round_;
    } else if (--noisy_left_ == 0) {
        return;
    }
    ++noisy_;
}

}  // namespace tensorpool::planner
