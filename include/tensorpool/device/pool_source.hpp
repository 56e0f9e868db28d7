#pragma once

/// @file
/// Host memory of runtimes out of a pool: CPU tensors live in it.

#include <cstddef>

#include <tensorpool/device/host_memory_source.hpp>
#include <tensorpool/export.hpp>
#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// Gets memory from a pool, which must outlive it.
class TENSORPOOL_API PoolSource final : public HostMemorySource {
public:
    /// Over the global pool.
    PoolSource() noexcept : pool_(&get_global_memory_pool()) {}
    explicit PoolSource(MemoryPool& pool) noexcept : pool_(&pool) {}

    MemoryPool& pool() const noexcept { return *pool_; }

    void* allocate(std::size_t bytes, std::size_t alignment) noexcept override;
    void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override;
    std::size_t trim() noexcept override;

private:
    MemoryPool* pool_;
};

/// The CPU's runtime, and the host memory of all others, get their memory from this pool, which
/// must outlive them. Throws std::logic_error where there is a runtime of the CPU already: it comes
/// before the first use, or after `reset_runtimes`.
TENSORPOOL_API void use_pool_on_cpu(MemoryPool& pool = get_global_memory_pool());

}  // namespace tensorpool
