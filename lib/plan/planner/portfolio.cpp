#include "plan/planner/portfolio.hpp"

#include <utility>

#include "plan/planner/orders.hpp"
#include "plan/planner/place.hpp"

namespace tensorpool::planner {
namespace {

struct Strategy {
    PlanMethod method;
    Gap gap;
};
// The strategies that win most often come first, because for many buffers only the first is tried.
constexpr Strategy strategies[] = {
    {PlanMethod::by_class, Gap::first},    {PlanMethod::by_size, Gap::first},
    {PlanMethod::by_conflicts, Gap::best}, {PlanMethod::by_area, Gap::first},
    {PlanMethod::by_lifetime, Gap::best},  {PlanMethod::by_conflicts, Gap::first},
    {PlanMethod::by_lifetime, Gap::first}, {PlanMethod::by_area, Gap::best},
    {PlanMethod::by_class, Gap::best},     {PlanMethod::by_size, Gap::best},
    {PlanMethod::by_time, Gap::best},      {PlanMethod::by_time, Gap::first}};
// About half a second for all strategies together.
constexpr std::uint64_t max_comparisons = 250'000'000;

}  // namespace

Candidate best_greedy(const Problem& problem, std::uint64_t enough_bytes,
                      Work::Clock::time_point deadline) {
    Candidate best;
    best.packing.peak_bytes = UINT64_MAX;
    std::uint64_t comparisons = 0;
    for (const Strategy& strategy : strategies) {
        Placing placing = place(problem, order_of(problem, strategy.method), strategy.gap);
        if (placing.packing.peak_bytes < best.packing.peak_bytes) {
            best = {std::move(placing.packing), strategy.method};
        }
        comparisons += placing.comparisons;
        if (best.packing.peak_bytes <= enough_bytes ||
            comparisons + placing.comparisons > max_comparisons)
            break;
        if (Work::Clock::now() >= deadline) break;
    }
    return best;
}

}  // namespace tensorpool::planner
