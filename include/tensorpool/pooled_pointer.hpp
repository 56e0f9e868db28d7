#pragma once

/// @file
/// The smart pointers of the standard library, for objects in a pool.

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <tensorpool/allocator.hpp>
#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// Destroys an object and frees its block.
///
/// The pool must outlive the deleter. Blocks of any size and alignment are accepted. As with
/// `delete`, an object may be destroyed through a pointer to its base only if the base has a
/// virtual destructor.
class PoolDeleter {
public:
    /// Makes a deleter for blocks of the global pool.
    PoolDeleter() noexcept : pool_(&get_global_memory_pool()) {}
    /// Makes a deleter for blocks of `pool`. Implicit, so that a pool can be passed where a pointer
    /// expects its deleter.
    PoolDeleter(MemoryPool& pool) noexcept : pool_(&pool) {}

    /// Destroys the object and frees its block.
    template <class T>
    void operator()(T* object) const noexcept {
        void* const block = block_of(object);
        if constexpr (!std::is_void_v<T>) std::destroy_at(object);
        pool_->deallocate(block);
    }

    /// Returns the pool that blocks go back to.
    MemoryPool& pool() const noexcept { return *pool_; }

private:
    // Returns the address of the whole object: a base need not lie at its beginning.
    template <class T>
    static void* block_of(T* object) noexcept {
        if constexpr (std::is_polymorphic_v<T>) {
            return const_cast<void*>(dynamic_cast<const volatile void*>(object));
        } else {
            return const_cast<std::remove_cv_t<T>*>(object);
        }
    }

    MemoryPool* pool_;
};

/// A unique pointer to a T in a pool, or to elements for `T[]`.
template <class T>
using PooledUnique = std::unique_ptr<T, PoolDeleter>;

static_assert(std::invocable<const PoolDeleter&, int*>);
static_assert(std::is_default_constructible_v<PooledUnique<int>>);
static_assert(std::is_nothrow_move_constructible_v<PooledUnique<int>>);
static_assert(sizeof(PooledUnique<int>) == 2 * sizeof(void*));

/// Makes a T from `arguments` in `pool` and returns the pointer that owns it.
///
/// A pool as first argument always means the pool for the object; pass it twice if T's constructor
/// needs one too. Throws AllocationError if the pool cannot meet the request, and any exception of
/// the constructor; nothing is then left behind.
template <class T, class... Arguments>
requires(!std::is_array_v<T>) PooledUnique<T> make_pooled_unique(MemoryPool& pool,
                                                                 Arguments&&... arguments) {
    using Object = std::remove_cv_t<T>;
    Allocator<Object> allocator(pool);
    const auto give_back = [&](Object* memory) { allocator.deallocate(memory, 1); };
    std::unique_ptr<Object, decltype(give_back)> memory(allocator.allocate(1), give_back);
    std::construct_at(memory.get(), std::forward<Arguments>(arguments)...);
    return PooledUnique<T>(memory.release(), pool);
}
/// Makes a T from `arguments` in the global pool and returns the pointer that owns it. Throws
/// AllocationError if the pool cannot meet the request, and any exception of the constructor;
/// nothing is then left behind.
template <class T, class... Arguments>
requires(!std::is_array_v<T>) PooledUnique<T> make_pooled_unique(Arguments&&... arguments) {
    return make_pooled_unique<T>(get_global_memory_pool(), std::forward<Arguments>(arguments)...);
}

/// Makes `count` value-initialised elements in `pool`, for `T[]`, and returns the pointer that owns
/// them; it owns nothing for 0. Throws std::bad_alloc if the size overflows or the pool cannot meet
/// the request. Use PooledArray for elements that need a destructor, because it stores their
/// number.
template <class T>
requires(std::is_unbounded_array_v<T>) PooledUnique<T> make_pooled_unique(MemoryPool& pool,
                                                                          std::size_t count) {
    using Element = std::remove_extent_t<T>;
    static_assert(std::is_trivially_destructible_v<Element>, "PooledArray holds other types");
    static_assert(std::is_nothrow_default_constructible_v<Element>,
                  "PooledArray holds other types");
    Element* const elements = Allocator<Element>(pool).allocate(count);
    std::uninitialized_value_construct_n(elements, count);
    return PooledUnique<T>(elements, pool);
}
/// Makes `count` value-initialised elements in the global pool, for `T[]`, and returns the pointer
/// that owns them; it owns nothing for 0. Throws std::bad_alloc if the size overflows or the pool
/// cannot meet the request.
template <class T>
requires(std::is_unbounded_array_v<T>) PooledUnique<T> make_pooled_unique(std::size_t count) {
    return make_pooled_unique<T>(get_global_memory_pool(), count);
}

/// Makes a T from `arguments` in `pool`, in one block with its reference counts, and returns a
/// shared pointer to it.
///
/// For `T[]` the first of `arguments` is the number of elements, as with std::allocate_shared. A
/// pool as first argument always means the pool for the object; pass it twice if T's constructor
/// needs one too. Throws std::bad_alloc if the pool cannot meet the request, and any exception of
/// the constructor; nothing is then left behind.
template <class T, class... Arguments>
std::shared_ptr<T> allocate_pooled_shared(MemoryPool& pool, Arguments&&... arguments) {
    using Element = std::remove_cv_t<std::remove_all_extents_t<T>>;
    return std::allocate_shared<T>(Allocator<Element>(pool), std::forward<Arguments>(arguments)...);
}
/// Makes a T from `arguments` in the global pool, in one block with its reference counts, and
/// returns a shared pointer to it. For `T[]` the first argument is the number of elements. Throws
/// std::bad_alloc if the pool cannot meet the request, and any exception of the constructor;
/// nothing is then left behind.
template <class T, class... Arguments>
std::shared_ptr<T> allocate_pooled_shared(Arguments&&... arguments) {
    return allocate_pooled_shared<T>(get_global_memory_pool(),
                                     std::forward<Arguments>(arguments)...);
}

}  // namespace tensorpool
