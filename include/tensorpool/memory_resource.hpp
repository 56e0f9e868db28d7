#pragma once

/// @file
/// A pool, or an arena, for the containers of `std::pmr`.

#include <concepts>
#include <cstddef>
#include <memory_resource>

#include <tensorpool/arena.hpp>
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

/// Gets memory from an arena, which must outlive it and its containers, and gives none back: it
/// goes when the arena is released. The threads are those of the arena; two are equal when their
/// arena is the same. As the standard wants it, 0 bytes get an address too. Throws as the arena
/// does.
///
/// Blocks are rounded to the arena's alignment: for containers of small nodes give it a small one
/// (ArenaOptions::alignment).
class TENSORPOOL_API ArenaResource final : public std::pmr::memory_resource {
public:
    explicit ArenaResource(Arena& arena) noexcept : arena_(&arena) {}

    Arena& arena() const noexcept { return *arena_; }

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

    Arena* arena_;
};

static_assert(std::derived_from<PoolResource, std::pmr::memory_resource>);
static_assert(std::derived_from<ArenaResource, std::pmr::memory_resource>);
static_assert(std::convertible_to<PoolResource*, std::pmr::polymorphic_allocator<>>);

}  // namespace tensorpool
