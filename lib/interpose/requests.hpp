#pragma once

#include <cstddef>

#include "interpose/blocks_of_pool.hpp"
#include "interpose/minimum.hpp"
#include "interpose/next_allocator.hpp"

/// What the exported functions are made of: whose a request is, and whose a block.
namespace tensorpool::interpose {

inline void* allocate(std::size_t bytes) noexcept {
    return is_for_pool(bytes) ? allocate_in_pool(bytes) : next_malloc(bytes);
}

inline void deallocate(void* p) noexcept {
    return may_be_of_pool(p) ? free_in_pool(p) : next_free(p);
}

inline std::size_t usable_size(void* p) noexcept {
    return is_of_pool(p) ? detail::bytes_of_block_in_use(p) : next_usable_size(p);
}

/// `alignment` is a power of two, of the size of a pointer at least. 0, or what errno says of it,
/// which stays as it is.
int allocate_aligned(void** to, std::size_t alignment, std::size_t bytes) noexcept;

}  // namespace tensorpool::interpose
