#pragma once

/// @file
/// An allocator for the containers of the standard library that takes memory from a pool.

#include <concepts>
#include <limits>
#include <memory>
#include <type_traits>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// A standard allocator that takes memory from a pool.
///
/// The pool must outlive the container and every container that it was moved or swapped into. Any
/// thread may use it, as the pool. Two allocators are equal if they use the same pool.
///
/// Moving and swapping containers carries the pool along, so neither moves an element. Copy
/// assignment does not: the target keeps its own pool. A copy-constructed container uses the pool
/// of its original.
template <class T>
class Allocator {
public:
    /// The type of the elements.
    using value_type = T;
    /// Allocators of different pools are not equal.
    using is_always_equal = std::false_type;
    /// Copy assignment keeps the target's pool.
    using propagate_on_container_copy_assignment = std::false_type;
    /// Move assignment takes the source's pool.
    using propagate_on_container_move_assignment = std::true_type;
    /// Swapping exchanges the pools.
    using propagate_on_container_swap = std::true_type;

    /// Takes memory from the global pool.
    Allocator() noexcept : pool_(&get_global_memory_pool()) {}
    /// Takes memory from `pool`. Implicit, so that a pool can be passed where a container expects
    /// its allocator.
    Allocator(MemoryPool& pool) noexcept : pool_(&pool) {}
    /// Takes memory from the pool of `other`. Containers rebind their allocator by this
    /// constructor.
    template <class U>
    Allocator(const Allocator<U>& other) noexcept : pool_(&other.pool()) {}

    /// Allocates memory for `count` elements, aligned to 64 bytes or to the alignment of T if that
    /// is larger. Returns nullptr for 0. Throws std::bad_array_new_length if `count * sizeof(T)`
    /// overflows, and AllocationError if the pool cannot meet the request.
    [[nodiscard]] T* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        if constexpr (alignof(T) > 64) {
            return static_cast<T*>(pool_->allocate(count * sizeof(T), alignof(T)));
        } else {
            return static_cast<T*>(pool_->allocate(count * sizeof(T)));
        }
    }
    /// Frees the memory at `p`, which an equal allocator returned from `allocate(count)`. nullptr
    /// is ignored.
    void deallocate(T* p, std::size_t count) noexcept {
        if constexpr (alignof(T) > 64) {
            pool_->deallocate(p, count * sizeof(T), alignof(T));
        } else {
            pool_->deallocate(p, count * sizeof(T));
        }
    }

    /// Returns the pool that the memory comes from.
    MemoryPool& pool() const noexcept { return *pool_; }

    /// Returns whether both allocators use the same pool.
    template <class U>
    bool operator==(const Allocator<U>& other) const noexcept {
        return pool_ == &other.pool();
    }

private:
    MemoryPool* pool_;
};

// The standard library has no concept for allocators. These are the requirements that type traits
// can check.
static_assert(std::is_same_v<std::allocator_traits<Allocator<int>>::pointer, int*>);
static_assert(
    std::is_same_v<std::allocator_traits<Allocator<int>>::rebind_alloc<double>, Allocator<double>>);
static_assert(std::is_nothrow_constructible_v<Allocator<double>, const Allocator<int>&>);
static_assert(std::equality_comparable<Allocator<int>>);
static_assert(std::is_nothrow_copy_assignable_v<Allocator<int>>);
static_assert(std::is_nothrow_swappable_v<Allocator<int>>);

}  // namespace tensorpool
