#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "planned/sequence.hpp"

namespace tensorpool::planned {

/// A sequence of requests, and where a plan puts them.
struct LearnedPlan {
    static constexpr std::uint64_t no_offset = UINT64_MAX;

    std::vector<Request> requests;
    std::vector<std::uint64_t> offsets;  ///< `no_offset` for those that are not planned
    std::uint64_t peak_bytes = 0;
    std::uint64_t lower_bound_bytes = 0;
    std::uint64_t pool_peak_bytes = 0;
    std::uint64_t planning_ns = 0;
};

/// Throws std::bad_alloc, and what `plan_memory` throws.
LearnedPlan plan_sequence(std::vector<Request> requests, std::chrono::nanoseconds budget);

/// Of those that are planned, in their order: what `validate` wants.
MemoryPlan memory_plan_of(const LearnedPlan& plan);

}  // namespace tensorpool::planned
