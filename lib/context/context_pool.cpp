#include "context/context_pool.hpp"

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/memory_source.hpp>

namespace tensorpool::detail {

MemoryPool& ContextPool::global() noexcept {
    return get_global_memory_pool();
}

void* ContextPool::allocate(MemoryPool& pool, std::size_t bytes, std::size_t alignment) {
    return alignment <= smallest_block_bytes ? pool.allocate(bytes)
                                             : pool.allocate(bytes, alignment);
}

void ContextPool::deallocate(MemoryPool& pool, void* p, std::size_t bytes,
                             std::size_t alignment) noexcept {
    if (alignment <= smallest_block_bytes) {
        pool.deallocate(p, bytes);
    } else {
        pool.deallocate(p, bytes, alignment);
    }
}

HeldBlock ContextPool::hold(MemoryPool& pool, std::size_t bytes, std::size_t alignment) {
    return {allocate(pool, bytes, alignment), bytes, BlockOwner::of_pool(&pool, alignment)};
}

PoolStatistics ContextPool::statistics(const MemoryPool& pool) {
    return pool.statistics();
}

}  // namespace tensorpool::detail
