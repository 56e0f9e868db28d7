#include "plan/learned_plan.hpp"

#include <algorithm>
#include <exception>

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

bool same_requests(std::span<const Request> one, std::span<const Request> other) noexcept {
    return std::ranges::equal(one, other, [](const Request& a, const Request& b) {
        return a.bytes == b.bytes && a.alignment == b.alignment;
    });
}

std::uint64_t checksum_of(std::span<const Request> requests) noexcept {
    Checksum checksum;
    for (const Request& request : requests) {
        checksum.add(request.bytes);
        checksum.add(request.alignment);
    }
    return checksum.value();
}

std::vector<TensorLifetime> lifetimes_of(std::span<const Request> requests) {
    std::vector<TensorLifetime> lifetimes;
    lifetimes.reserve(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const Request& request = requests[i];
        if (!request.is_planned()) continue;
        lifetimes.push_back({.begin = static_cast<std::int64_t>(i),
                             .end = request.end,
                             .bytes = request.bytes,
                             .alignment = request.alignment});
    }
    return lifetimes;
}

std::uint64_t pool_peak_of(std::span<const Request> requests) {
    std::vector<std::uint64_t> freed(requests.size() + 1);  // before the request of this number
    std::uint64_t now = 0;
    std::uint64_t max = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        now -= freed[i];
        if (!requests[i].is_planned()) continue;
        now += requests[i].pool_bytes;
        freed[requests[i].end] += requests[i].pool_bytes;
        max = std::max(max, now);
    }
    return max;
}

// Relaxed: the first thread that calls it runs it. The executor makes the requests visible to that
// thread.
void PlanningJob::run() noexcept {
    if (started_.exchange(true, std::memory_order_relaxed)) return;
    try {
        plan_ = plan_sequence(std::move(requests_), budget_);
    } catch (const std::exception&) {
        // There was no memory for planning, or the sizes exceed every plan: there is no result.
    }
    done_.store(true, std::memory_order_release);
}

}  // namespace tensorpool::planned
