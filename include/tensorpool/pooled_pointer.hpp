#pragma once

/// @file
/// The smart pointers of the standard library, over objects that lie in a pool.

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <tensorpool/allocator.hpp>
#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// Destroys an object and gives its block back to the pool, which must outlive it. Takes any block
/// of the pool, whatever its size and alignment. As with `delete`, an object may be given back
/// through a pointer to its base only where the base has a virtual destructor.
class PoolDeleter {
public:
    /// Over the global pool.
    PoolDeleter() noexcept : pool_(&get_global_memory_pool()) {}
    /// Over `pool`; implicit, so that a pool can be given where a pointer wants its deleter.
    PoolDeleter(MemoryPool& pool) noexcept : pool_(&pool) {}

    template <class T>
    void operator()(T* object) const noexcept {
        void* const block = block_of(object);
        if constexpr (!std::is_void_v<T>) std::destroy_at(object);
        pool_->deallocate(block);
    }

    MemoryPool& pool() const noexcept { return *pool_; }

private:
    // The whole object's address: a base need not lie at its beginning.
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

/// An owner of a T, or of elements for `T[]`, in a pool.
template <class T>
using PooledUnique = std::unique_ptr<T, PoolDeleter>;

static_assert(std::invocable<const PoolDeleter&, int*>);
static_assert(std::is_default_constructible_v<PooledUnique<int>>);
static_assert(std::is_nothrow_move_constructible_v<PooledUnique<int>>);
static_assert(sizeof(PooledUnique<int>) == 2 * sizeof(void*));

/// A T made of `arguments` in `pool`. A pool as first argument always says where the object goes;
/// one that T's constructor wants as well is named twice. Throws as `MemoryPool::allocate` does,
/// and what the constructor throws; then nothing is left behind.
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
/// As above, in the global pool.
template <class T, class... Arguments>
requires(!std::is_array_v<T>) PooledUnique<T> make_pooled_unique(Arguments&&... arguments) {
    return make_pooled_unique<T>(get_global_memory_pool(), std::forward<Arguments>(arguments)...);
}

/// `count` value-initialised elements in `pool`, for `T[]`; owns nothing for 0. Elements that need
/// a destructor belong into a PooledArray, which knows how many there are.
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
/// As above, in the global pool.
template <class T>
requires(std::is_unbounded_array_v<T>) PooledUnique<T> make_pooled_unique(std::size_t count) {
    return make_pooled_unique<T>(get_global_memory_pool(), count);
}

/// A shared T made of `arguments`, in one block of `pool` with its counts. For `T[]` the first
/// argument is the number of elements, as with std::allocate_shared. Where a pool as first argument
/// goes and what is thrown: as `make_pooled_unique`.
template <class T, class... Arguments>
std::shared_ptr<T> allocate_pooled_shared(MemoryPool& pool, Arguments&&... arguments) {
    using Element = std::remove_cv_t<std::remove_all_extents_t<T>>;
    return std::allocate_shared<T>(Allocator<Element>(pool), std::forward<Arguments>(arguments)...);
}
/// As above, in the global pool.
template <class T, class... Arguments>
std::shared_ptr<T> allocate_pooled_shared(Arguments&&... arguments) {
    return allocate_pooled_shared<T>(get_global_memory_pool(),
                                     std::forward<Arguments>(arguments)...);
}

}  // namespace tensorpool
