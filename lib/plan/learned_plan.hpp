#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "plan/sequence.hpp"

namespace tensorpool::planned {

/// A sequence of requests, and the plan's offset for each.
struct LearnedPlan {
    static constexpr std::uint64_t no_offset = UINT64_MAX;

    std::vector<Request> requests;
    std::vector<std::uint64_t> offsets;  ///< `no_offset` for requests left to the pool
    std::uint64_t peak_bytes = 0;
    std::uint64_t lower_bound_bytes = 0;
    std::uint64_t pool_peak_bytes = 0;
    std::uint64_t planning_ns = 0;
};

/// Plans a sequence of requests within a time limit. Throws std::bad_alloc, and what `plan_memory`
/// throws.
LearnedPlan plan_sequence(std::vector<Request> requests, std::chrono::nanoseconds budget);

/// Returns the plan of the planned requests only, in their order, for `validate`.
MemoryPlan memory_plan_of(const LearnedPlan& plan);

}  // namespace tensorpool::planned
