#pragma once

/// @file
/// Memory resources for the containers of `std::pmr` that take memory from a pool or an arena.

#include <memory_resource>

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// A memory resource that takes memory from a pool.
///
/// The pool must outlive the resource. Any thread may use it, as the pool. Two resources are equal
/// if they use the same pool. As the standard requires, a request for 0 bytes gets a block too.
/// Throws AllocationError if the pool cannot meet a request.
class TENSORPOOL_API PoolResource final : public std::pmr::memory_resource {
public:
    /// Takes memory from the global pool.
    PoolResource() noexcept : pool_(&get_global_memory_pool()) {}
    /// Takes memory from `pool`.
    explicit PoolResource(MemoryPool& pool) noexcept : pool_(&pool) {}

    /// Returns the pool that the memory comes from.
    MemoryPool& pool() const noexcept { return *pool_; }

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override;
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

    MemoryPool* pool_;
};

/// A memory resource that takes memory from an arena.
///
/// The arena must outlive the resource and its containers. Deallocation does nothing: the memory
/// goes when the arena is released. The threads that may use the arena may use the resource. Two
/// resources are equal if they use the same arena. As the standard requires, a request for 0 bytes
/// gets an address too. Throws AllocationError if the arena cannot meet a request.
///
/// Block sizes are rounded up to the arena's alignment. For containers with small nodes, use an
/// arena with a small one (ArenaOptions::alignment).
class TENSORPOOL_API ArenaResource final : public std::pmr::memory_resource {
public:
    /// Takes memory from `arena`.
    explicit ArenaResource(Arena& arena) noexcept : arena_(&arena) {}

    /// Returns the arena that the memory comes from.
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
