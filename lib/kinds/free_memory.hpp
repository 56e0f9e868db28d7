#pragma once

#include "kinds/kind.hpp"

// Free memory of a pool: what threads and caches hold goes back to the page heap, and from there to
// the system. No caller holds a lock of the pool.

namespace tensorpool::kinds {

/// What a pool keeps free outside of its page heap, as its rungs of the ladder see it.
struct KeptMemory {
    PoolParts& pool;
    blocks::BucketDepot::Magazines magazines;
    Changes& changes;
};
/// Sets the first rungs of the ladder (limits/ladder.hpp), which move all of it into the page heap.
/// Called whenever a pool is made.
void set_rungs() noexcept;
inline constexpr unsigned rung_count = 6;
/// Climbs these rungs, so that blocks freed in one size can serve another. Returns false if some
/// threads were inside slow paths and kept their blocks.
bool empty_caches(PoolParts& pool, blocks::BucketDepot::Magazines magazines,
                  Changes& changes) noexcept;
/// Returns what was not needed for a whole period, if one has ended. Returns whether one has.
bool keep_to_retention(PoolParts& pool, Changes& changes) noexcept;
/// Returns the free bytes that take memory and that the system may not take: extents, cached large
/// blocks, and large blocks that threads keep, with the room that they took for more.
std::size_t unoffered_bytes(const PoolParts& pool) noexcept;
/// Lets the system take all free memory.
void offer_free(PoolParts& pool, Changes& changes) noexcept;

}  // namespace tensorpool::kinds
