#pragma once

/// @file
/// The smart pointers of the standard library, for objects in a pool or another source.

#include <tensorpool/allocator.hpp>
#include <tensorpool/pooled_allocation.hpp>

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

/// Destroys an object and ends its block, which lies in a source other than a pool: an Arena, a
/// DeviceAllocator, or any other that PooledAllocation accepts.
///
/// The source must outlive the deleter. What the end of the block means is described at
/// PooledAllocation. As with `delete`, an object may be destroyed through a pointer to its base
/// only if the base has a virtual destructor.
template <class Source>
class SourceDeleter {
public:
    /// Makes a deleter of no block.
    SourceDeleter() noexcept = default;
    /// Makes the deleter of `block`, which `PooledAllocation::detach` returned.
    explicit SourceDeleter(const HeldBlock& block) noexcept : block_(block) {}

    /// Destroys the object and ends its block.
    template <class T>
    void operator()(T* object) const noexcept {
        if constexpr (!std::is_void_v<T>) std::destroy_at(object);
        const PooledAllocation ended(block_);
    }

private:
    HeldBlock block_;
};

namespace detail {
template <class Source>
struct DeleterOf {
    using Type = SourceDeleter<Source>;
};
template <>
struct DeleterOf<MemoryPool> {
    using Type = PoolDeleter;
};
}  // namespace detail

/// A unique pointer to a T in a pool, or to elements for `T[]`: two pointers. With another source,
/// such as `PooledUnique<T, Arena>`, a unique pointer to a T there: five pointers.
template <class T, class Source = MemoryPool>
using PooledUnique = std::unique_ptr<T, typename detail::DeleterOf<Source>::Type>;

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

namespace detail {

template <class Source>
concept AnySource = OtherSource<Source> || StreamSource<Source>;

/// A source that holds a T made from the arguments, rather than being the first of them itself.
template <class Source, class T, class... Arguments>
concept SourceOf = AnySource<Source> &&(std::is_constructible_v<T, Arguments...> ||
                                        !std::is_constructible_v<T, Source&, Arguments...>);

/// Allocates `bytes` bytes for objects of type T. Throws std::invalid_argument if the host cannot
/// access them.
template <class T, class Source>
PooledAllocation memory_for(Source& source, std::size_t bytes) {
    static_assert(!ReleasingSource<Source> || std::is_trivially_destructible_v<T>,
                  "a release of the source would skip the destructor of the object");
    PooledAllocation memory;
    if constexpr (StreamSource<Source>) {
        static_assert(alignof(T) <= 256, "device allocators align blocks to 256 bytes");
        memory = PooledAllocation(source, bytes);
    } else {
        memory = PooledAllocation(source, bytes, alignof(T) > 64 ? alignof(T) : 64);
    }
    (void)memory.as<std::byte>();
    return memory;
}

/// Passes the block of `memory` and the object in it, at the host's address, to a unique pointer.
template <class T, class Source>
PooledUnique<T, Source> owner_of(PooledAllocation& memory) {
    using Element = std::remove_extent_t<T>;
    auto* const object = static_cast<Element*>(memory.host_pointer());
    return PooledUnique<T, Source>(object, SourceDeleter<Source>(memory.detach()));
}

}  // namespace detail

/// Makes a T from `arguments` in `source`, such as an Arena, and returns the pointer that owns it.
/// A device allocator is used for its default stream.
///
/// A source as first argument means the source for the object; pass it twice if T's constructor
/// needs one too. Exception: if T is constructible from all the arguments, but not without the
/// first, the constructor gets all of them, and the object lies in the global pool. In an arena, a
/// context or a scratch, which may release the block before the pointer ends, T must not need a
/// destructor. Throws what the source throws, std::invalid_argument if the host cannot access the
/// memory, and any exception of the constructor; nothing is then left behind.
template <class T, class Source, class... Arguments>
requires(!std::is_array_v<T> && detail::SourceOf<Source, T, Arguments...>)
    PooledUnique<T, Source> make_pooled_unique(Source& source, Arguments&&... arguments) {
    using Object = std::remove_cv_t<T>;
    PooledAllocation memory = detail::memory_for<Object>(source, sizeof(Object));
    std::construct_at(static_cast<Object*>(memory.host_pointer()),
                      std::forward<Arguments>(arguments)...);
    return detail::owner_of<T, Source>(memory);
}
/// Makes `count` value-initialised elements in `source`, for `T[]`, and returns the pointer that
/// owns them; it owns nothing for 0. Throws std::bad_array_new_length if the size overflows, what
/// the source throws, and std::invalid_argument if the host cannot access the memory. Use
/// PooledArray for elements that need a destructor, because it stores their number.
template <class T, class Source>
requires(std::is_unbounded_array_v<T>&& detail::AnySource<Source>)
    PooledUnique<T, Source> make_pooled_unique(Source& source, std::size_t count) {
    using Element = std::remove_extent_t<T>;
    static_assert(std::is_trivially_destructible_v<Element>, "PooledArray holds other types");
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(Element)) {
        throw std::bad_array_new_length();
    }
    PooledAllocation memory = detail::memory_for<Element>(source, count * sizeof(Element));
    std::uninitialized_value_construct_n(static_cast<Element*>(memory.host_pointer()), count);
    return detail::owner_of<T, Source>(memory);
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
/// Makes a T from `arguments` in `source`, such as an Arena, and returns a shared pointer to it.
/// Its reference counts lie in the global pool, so that a release of the source leaves them valid.
///
/// For `T[]` the only argument is the number of elements. A source as first argument means the
/// source for the object; pass it twice if T's constructor needs one too. Exception: if T is
/// constructible from all the arguments, but not without the first, the constructor gets all of
/// them, and the object lies in the global pool. In an arena, a context or a scratch, T must not
/// need a destructor. Throws what `make_pooled_unique` throws, and std::bad_alloc if there is no
/// memory for the counts; nothing is then left behind.
template <class T, class Source, class... Arguments>
requires detail::SourceOf<Source, T, Arguments...> std::shared_ptr<T> allocate_pooled_shared(
    Source& source, Arguments&&... arguments) {
    auto object = make_pooled_unique<T>(source, std::forward<Arguments>(arguments)...);
    const auto deleter = object.get_deleter();
    return std::shared_ptr<T>(object.release(), deleter, Allocator<std::byte>());
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
