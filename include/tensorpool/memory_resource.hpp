#pragma once

/// @file
/// A pool for the containers of `std::pmr`.

#include <concepts>
#include <cstddef>
#include <memory_resource>

#include <tensorpool/export.hpp>
#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// Gets memory from a pool, which must outlive it. Any thread, as the pool. Two are equal when
/// their pool is the same. As the standard wants it, 0 bytes get a block too. Throws as the pool
/// does.
class TENSORPOOL_API PoolResource final : public std::pmr::memory_resource {
public:
    /// Over the global pool.
    PoolResource() noexcept : pool_(&get_global_memory_pool()) {}
    explicit PoolResource(MemoryPool& pool) noexcept : pool_(&pool) {}

    MemoryPool& pool() const noexcept { return *pool_; }

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override;
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

    MemoryPool* pool_;
};

static_assert(std::derived_from<PoolResource, std::pmr::memory_resource>);
static_assert(std::convertible_to<PoolResource*, std::pmr::polymorphic_allocator<>>);

}  // namespace tensorpool
