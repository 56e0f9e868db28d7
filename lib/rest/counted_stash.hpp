#pragma once

#include "rest/stash_group.hpp"
#include "rest/stash_state.hpp"

namespace tensorpool::stashing {

/// Returns a block for callers that write all of it. Throws AllocationError.
inline PooledAllocation restored_block(MemoryPool& pool, std::size_t bytes, std::size_t alignment) {
    if (alignment > 64) return PooledAllocation(pool, bytes, alignment);
    void* const address = pool.allocate_prefaulted(bytes);
    return PooledAllocation(HeldBlock{address, bytes, BlockOwner::of_pool(&pool, alignment)});
}

/// The content of a Stash, which is counted in the statistics of its name.
class CountedStash {
public:
    /// Throws what the constructor of StashState does.
    CountedStash(std::span<const std::byte> bytes, const StashState::Origin& origin,
                 StashOptions options);
    ~CountedStash();
    CountedStash& operator=(const CountedStash&) = delete;

    /// Returns the content in a block of `pool`. Throws AllocationError and StashError.
    PooledAllocation restore(MemoryPool& pool) const;
    /// Does what StashState::decode_to does, and counts it as a restore.
    void decode_to(std::span<std::byte> memory) const;
    const StashState& state() const noexcept { return state_; }

private:
    StashGroup group_;
    const StashState state_;
};

}  // namespace tensorpool::stashing
