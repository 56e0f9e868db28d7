#include "planner/portfolio.hpp"

#include <utility>

#include "planner/orders.hpp"
#include "planner/place.hpp"

namespace tensorpool::planner {
namespace {

struct Way {
    PlanMethod method;
    Gap gap;
};
// What wins most often comes first: of many buffers, no other is tried.
constexpr Way ways[] = {
    {PlanMethod::by_class, Gap::first},    {PlanMethod::by_size, Gap::first},
    {PlanMethod::by_conflicts, Gap::best}, {PlanMethod::by_area, Gap::first},
    {PlanMethod::by_lifetime, Gap::best},  {PlanMethod::by_conflicts, Gap::first},
    {PlanMethod::by_lifetime, Gap::first}, {PlanMethod::by_area, Gap::best},
    {PlanMethod::by_class, Gap::best},     {PlanMethod::by_size, Gap::best},
    {PlanMethod::by_time, Gap::best},      {PlanMethod::by_time, Gap::first}};
// About half a second for all of them.
constexpr std::uint64_t max_looks = 250'000'000;

}  // namespace

Candidate best_greedy(const Problem& problem, std::uint64_t enough_bytes,
                      Work::Clock::time_point deadline) {
    Candidate best;
    best.packing.peak_bytes = UINT64_MAX;
    std::uint64_t looks = 0;
    for (const Way& way : ways) {
        Placing placing = place(problem, order_of(problem, way.method), way.gap);
        if (placing.packing.peak_bytes < best.packing.peak_bytes) {
            best = {std::move(placing.packing), way.method};
        }
        looks += placing.looks;
        if (best.packing.peak_bytes <= enough_bytes || looks + placing.looks > max_looks) break;
        if (Work::Clock::now() >= deadline) break;
    }
    return best;
}

}  // namespace tensorpool::planner
