#pragma once

/// @file
/// A source of host memory for runtimes that takes memory from a pool, so that CPU tensors lie in
/// it.

#include <tensorpool/device/host_memory_source.hpp>
#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// A HostMemorySource that takes memory from a pool, which must outlive it.
class TENSORPOOL_API PoolSource final : public HostMemorySource {
public:
    /// Takes memory from the global pool.
    PoolSource() noexcept : pool_(&get_global_memory_pool()) {}
    /// Takes memory from `pool`.
    explicit PoolSource(MemoryPool& pool) noexcept : pool_(&pool) {}

    /// Returns the pool that the memory comes from.
    MemoryPool& pool() const noexcept { return *pool_; }

    void* allocate(std::size_t bytes, std::size_t alignment) noexcept override;
    void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override;
    std::size_t trim() noexcept override;

private:
    MemoryPool* pool_;
};

/// Makes the CPU's runtime, and the host memory of all other runtimes, take memory from this pool,
/// which must outlive them. Throws std::logic_error if the CPU already has a runtime: call it
/// before the first use, or after `reset_runtimes`.
TENSORPOOL_API void use_pool_on_cpu(MemoryPool& pool = get_global_memory_pool());

}  // namespace tensorpool
