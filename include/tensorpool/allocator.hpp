#pragma once

/// @file
/// A pool for the containers of the standard library.

#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// Gets a container's memory from a pool, which must outlive the container and all that it was
/// moved or swapped into. Any thread, as the pool. Two are equal when their pool is the same.
///
/// Moving and swapping containers takes the pool along, so neither ever moves an element. Assigning
/// by copy does not: a container's elements stay in the pool that it was given. A copy made anew
/// uses the pool of its original.
template <class T>
class Allocator {
public:
    using value_type = T;
    using is_always_equal = std::false_type;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    /// Over the global pool.
    Allocator() noexcept : pool_(&get_global_memory_pool()) {}
    /// Over `pool`; implicit, so that a pool can be given where a container wants its allocator.
    Allocator(MemoryPool& pool) noexcept : pool_(&pool) {}
    /// Over the pool of another, for the other types that a container needs.
    template <class U>
    Allocator(const Allocator<U>& other) noexcept : pool_(&other.pool()) {}

    /// Memory for `count` elements, aligned to 64 or to what T asks for; nullptr for 0. Throws
    /// std::bad_array_new_length when `count * sizeof(T)` overflows, otherwise as the pool does.
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
    /// Takes what an equal allocator's `allocate(count)` returned.
    void deallocate(T* p, std::size_t count) noexcept {
        if constexpr (alignof(T) > 64) {
            pool_->deallocate(p, count * sizeof(T), alignof(T));
        } else {
            pool_->deallocate(p, count * sizeof(T));
        }
    }

    MemoryPool& pool() const noexcept { return *pool_; }

    template <class U>
    bool operator==(const Allocator<U>& other) const noexcept {
        return pool_ == &other.pool();
    }

private:
    MemoryPool* pool_;
};

// The standard names no concept for an allocator; these are the requirements that types can tell.
static_assert(std::is_same_v<std::allocator_traits<Allocator<int>>::pointer, int*>);
static_assert(
    std::is_same_v<std::allocator_traits<Allocator<int>>::rebind_alloc<double>, Allocator<double>>);
static_assert(std::is_nothrow_constructible_v<Allocator<double>, const Allocator<int>&>);
static_assert(std::equality_comparable<Allocator<int>>);
static_assert(std::is_nothrow_copy_assignable_v<Allocator<int>>);
static_assert(std::is_nothrow_swappable_v<Allocator<int>>);

}  // namespace tensorpool
