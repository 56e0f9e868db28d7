#pragma once

#include <cstddef>

namespace tensorpool {

class MemoryPool;
struct HeldBlock;
struct PoolStatistics;

namespace detail {

/// What a Context needs of a MemoryPool.
struct ContextPool {
    static MemoryPool& global() noexcept;
    /// Throws AllocationError on failure. `bytes` is not 0.
    static void* allocate(MemoryPool& pool, std::size_t bytes, std::size_t alignment);
    static void deallocate(MemoryPool& pool, void* p, std::size_t bytes,
                           std::size_t alignment) noexcept;
    /// Allocates a block for a handle, which frees it. Throws AllocationError on failure.
    static HeldBlock hold(MemoryPool& pool, std::size_t bytes, std::size_t alignment);
    static PoolStatistics statistics(const MemoryPool& pool);
};

}  // namespace detail
}  // namespace tensorpool
