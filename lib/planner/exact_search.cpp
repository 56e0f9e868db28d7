#include "planner/exact_search.hpp"

#include <algorithm>
#include <bit>

#include "planner/bottom_up_search.hpp"

namespace tensorpool::planner {
namespace {

// Luby, Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms" (1993): 1 1 2 1 1 2 4 …
std::uint64_t luby(std::uint64_t i) noexcept {
    while (!std::has_single_bit(i + 1)) i -= std::bit_floor(i) - 1;
    return (i + 1) / 2;
}

/// Runs of growing length, in turns: each order as it is, twice as long each time, until one run
/// sees all there is; and between them short ones with noise, which find what none of the orders
/// does.
class SearchRounds {
public:
    SearchRounds(const Problem& problem, const SearchTables& tables, std::uint64_t capacity,
                 Work& work)
        : search_(problem, tables, capacity),
          noise_(problem.buffers.size()),
          run_nodes_(2 * std::max<std::uint64_t>(problem.buffers.size(), 64)),
          work_(work) {}

    SearchEnd go_on() {
        for (std::uint64_t round = 0;; ++round) {
            SearchEnd end = plain_round(run_nodes_ << std::min<std::uint64_t>(round, 40));
            if (end != SearchEnd::stopped || work_.over()) return end;
            end = noisy_rounds(std::uint64_t{1} << std::min<std::uint64_t>(round, 40));
            if (end != SearchEnd::stopped || work_.over()) return end;
        }
    }
    const std::vector<std::uint64_t>& offsets() const noexcept { return search_.offsets(); }

private:
    SearchEnd plain_round(std::uint64_t nodes) {
        noise_.clear();
        return each_order(nodes);
    }
    SearchEnd noisy_rounds(std::uint64_t count) {
        SearchEnd end = SearchEnd::stopped;
        while (count-- > 0 && end == SearchEnd::stopped && !work_.over()) {
            noise_.draw();
            end = each_order(2 * run_nodes_ * luby(++noisy_));
        }
        return end;
    }
    SearchEnd each_order(std::uint64_t nodes) {
        for (const SearchOrder order : all_search_orders) {
            const SearchEnd end = search_.run(order, noise_, nodes, work_);
            if (end != SearchEnd::stopped || work_.over()) return end;
        }
        return SearchEnd::stopped;
    }

    BottomUpSearch search_;
    OrderNoise noise_;
    std::uint64_t run_nodes_;
    std::uint64_t noisy_ = 0;
    Work& work_;
};

std::uint64_t peak_of(const Problem& problem, const std::vector<std::uint64_t>& offsets) noexcept {
    std::uint64_t peak = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        peak = std::max(peak, offsets[i] + problem.buffers[i].bytes);
    }
    return peak;
}

}  // namespace

SearchEnd search_packing(const Problem& problem, std::uint64_t capacity, Work& work,
                         Packing& packing) {
    const SearchTables tables = make_search_tables(problem);
    if (!tables.made) return SearchEnd::stopped;
    SearchRounds rounds(problem, tables, capacity, work);
    const SearchEnd end = rounds.go_on();
    if (end != SearchEnd::found) return end;
    packing = {.offsets = rounds.offsets(), .peak_bytes = peak_of(problem, rounds.offsets())};
    return end;
}

}  // namespace tensorpool::planner
