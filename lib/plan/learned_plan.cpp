#include "plan/learned_plan.hpp"

#include <utility>

#include "platform/platform.hpp"

namespace tensorpool::planned {

LearnedPlan plan_sequence(std::vector<Request> requests, std::chrono::nanoseconds budget) {
    const std::uint64_t began = platform::monotonic_clock_ns();
    LearnedPlan plan{.requests = std::move(requests), .offsets = {}};
    const MemoryPlan found = plan_memory(lifetimes_of(plan.requests), {.budget = budget});
    plan.offsets.reserve(plan.requests.size());
    auto next = found.offsets.begin();
    for (const Request& request : plan.requests) {
        plan.offsets.push_back(request.is_planned() ? *next++ : LearnedPlan::no_offset);
    }
    plan.peak_bytes = found.peak_bytes;
    plan.lower_bound_bytes = found.lower_bound_bytes;
    plan.pool_peak_bytes = pool_peak_of(plan.requests);
    plan.planning_ns = platform::monotonic_clock_ns() - began;
    return plan;
}

MemoryPlan memory_plan_of(const LearnedPlan& plan) {
    MemoryPlan memory_plan;
    for (const std::uint64_t offset : plan.offsets) {
        if (offset != LearnedPlan::no_offset) memory_plan.offsets.push_back(offset);
    }
    memory_plan.peak_bytes = plan.peak_bytes;
    memory_plan.lower_bound_bytes = plan.lower_bound_bytes;
    return memory_plan;
}

}  // namespace tensorpool::planned
