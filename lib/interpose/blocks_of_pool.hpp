#pragma once

#include <cstddef>

#include <tensorpool/detail/address_range.hpp>

/// The pool as malloc needs it: nothing throws, and a request that is refused sets `errno`.
namespace tensorpool::interpose {

/// Whether `p` may be of the pool: others may have mapped something between what is the pool's.
inline bool may_be_of_pool(const void* p) noexcept {
    return detail::pool_addresses.contains(p);
}
inline bool is_of_pool(const void* p) noexcept {
    return may_be_of_pool(p) && detail::lies_in_a_pool(p);
}

// Not of 0 bytes. From inside of the pool they come from the next allocator, as does what the pool
// cannot serve, unless a limit that the user set refuses it.
void* allocate_in_pool(std::size_t bytes) noexcept;
void* allocate_zeroed_in_pool(std::size_t bytes) noexcept;
/// `alignment` is a power of two.
void* allocate_aligned_in_pool(std::size_t bytes, std::size_t alignment) noexcept;

// REQUIRES: `p` is of the pool.
/// The block with room for `bytes`, without a copy; nullptr, and it is as it was, where that cannot
/// be had.
void* lengthen_in_pool(void* p, std::size_t bytes) noexcept;
// REQUIRES: `p` may be of the pool. What is not goes to the next allocator.
void free_in_pool(void* p) noexcept;

}  // namespace tensorpool::interpose
