// The description of a request that a pool could not serve.

#include <algorithm>

#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

namespace {

// The parts of the free memory add up to the capacity less what is in use, even if other threads
// allocate and free at the same time: free memory that no other part accounts for is reported as
// lying between blocks.
AllocationFailure describe(const PoolStatistics& now, std::size_t bytes,
                           const pages::Refusal& refusal) noexcept {
    AllocationFailure failure =
        base::failure_of(refusal, bytes, now.in_use_bytes, now.capacity_bytes);
    failure.knows_free = refusal.knows_free;
    if (!failure.knows_free) return failure;
    std::size_t free = now.capacity_bytes - std::min(now.in_use_bytes, now.capacity_bytes);
    const auto take = [&](std::size_t part) {
        part = std::min(part, free);
        free -= part;
        return part;
    };
    failure.free_pages = take(refusal.free_pages);
    failure.largest_free = std::min(refusal.largest_free, failure.free_pages);
    failure.with_threads = take(now.parked_bytes + now.lost_bytes);
    failure.between_blocks = free;
    return failure;
}

}  // namespace

AllocationError Pool::error_for(std::size_t bytes, const pages::SlowPath& path) const noexcept {
    AllocationFailure failure = describe(parts_.counters.statistics(), bytes, path.refusal);
    const limits::BudgetLines lines(path.budget);
    failure.details = lines.c_str();
    return {parts_.name(), failure};
}

}  // namespace abi_2
}  // namespace tensorpool::detail
