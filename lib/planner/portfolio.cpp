#include "planner/portfolio.hpp"

#include <utility>
#include <vector>

#include "planner/orders.hpp"
#include "planner/place.hpp"

namespace tensorpool::planner {
namespace {

// What wins most often comes first.
constexpr PlanMethod methods[] = {PlanMethod::by_area, PlanMethod::by_size, PlanMethod::by_lifetime,
                                  PlanMethod::by_conflicts, PlanMethod::by_time};

}  // namespace

Candidate best_greedy(const Problem& problem, std::uint64_t enough_bytes) {
    Candidate best;
    best.packing.peak_bytes = UINT64_MAX;
    for (const PlanMethod method : methods) {
        const std::vector<std::uint32_t> order = order_of(problem, method);
        for (const Gap gap : {Gap::first, Gap::best}) {
            Packing packing = place(problem, order, gap);
            if (packing.peak_bytes >= best.packing.peak_bytes) continue;
            best = {std::move(packing), method};
            if (best.packing.peak_bytes <= enough_bytes) return best;
        }
    }
    return best;
}

}  // namespace tensorpool::planner
