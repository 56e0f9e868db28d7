// What a pool says of a request that it could not meet.

#include <algorithm>

#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

void Pool::fail(std::size_t bytes, const pages::Refusal& refusal) const {
    throw AllocationError(options_.name.c_str(), describe(bytes, refusal));
}

// The parts of what is free add up to the capacity less what is in use, whatever other threads do
// meanwhile: what nobody knows better lies between blocks.
AllocationFailure Pool::describe(std::size_t bytes, const pages::Refusal& refusal) const noexcept {
    const PoolStatistics now = slots_.statistics();
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

}  // namespace abi_2
}  // namespace tensorpool::detail
