#pragma once

#include <cstdint>
#include <initializer_list>

#include <tensorpool/memory_pool.hpp>

#include "plan/learned_plan.hpp"
#include "pool/pool.hpp"

namespace tensorpool::planned::testing {

/// The pool that lends memory to the plans of tests.
inline MemoryPool& public_pool_of_tests() {
    static MemoryPool pool;
    return pool;
}
inline detail::Pool& pool_of_tests() {
    return detail::PoolAccess::of(public_pool_of_tests());
}

/// A buffer of a plan: its offset and length in granules of 64 bytes, and the number of requests
/// made before it was freed.
struct Placed {
    std::uint64_t offset;
    std::uint64_t length;
    std::uint32_t end;
};

inline Request request_of(std::uint64_t granules, std::uint32_t end, std::uint32_t alignment = 64) {
    return {
        .bytes = granules * 64, .pool_bytes = granules * 128, .alignment = alignment, .end = end};
}

inline void add_left_to_pool(LearnedPlan& plan, std::uint64_t granules) {
    plan.requests.push_back(request_of(granules, Request::outlives));
    plan.offsets.push_back(LearnedPlan::no_offset);
}

inline void add(LearnedPlan& plan, const Placed& placed) {
    plan.requests.push_back(request_of(placed.length, placed.end));
    plan.offsets.push_back(placed.offset * 64);
    const std::uint64_t end = (placed.offset + placed.length) * 64;
    plan.peak_bytes = plan.peak_bytes > end ? plan.peak_bytes : end;
}

inline LearnedPlan plan_of(std::initializer_list<Placed> buffers) {
    LearnedPlan plan;
    for (const Placed& placed : buffers) add(plan, placed);
    return plan;
}

/// Five requests: A and B side by side; then C, which covers both; D, which covers the first half
/// of B; and E, which is left to the pool.
inline LearnedPlan small_plan() {
    LearnedPlan plan = plan_of({{0, 4, 2}, {4, 4, 2}, {0, 8, 3}, {4, 2, 4}});
    add_left_to_pool(plan, 3);
    return plan;
}

}  // namespace tensorpool::planned::testing
