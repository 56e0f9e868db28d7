#pragma once

#include <cstddef>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool::stashing {

/// Returns a block for callers that write all of it. Throws AllocationError.
inline PooledAllocation restored_block(MemoryPool& pool, std::size_t bytes, std::size_t alignment) {
    if (alignment > 64) return PooledAllocation(pool, bytes, alignment);
    void* const address = pool.allocate_prefaulted(bytes);
    return PooledAllocation(HeldBlock{address, bytes, BlockOwner::of_pool(&pool, alignment)});
}

}  // namespace tensorpool::stashing
