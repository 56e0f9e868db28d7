#pragma once

#include "interpose/blocks_of_pool.hpp"
#include "interpose/minimum.hpp"
#include "interpose/next_allocator.hpp"

/// The parts of the exported functions: which allocator serves a request, and which one owns a
/// block.
namespace tensorpool::interpose {

inline void* allocate(std::size_t bytes, AllocatedBy by) noexcept {
    return is_for_pool(bytes) ? allocate_in_pool(bytes, by) : next_malloc(bytes);
}

inline void deallocate(void* p, const FreedAs& freed) noexcept {
    return may_be_of_pool(p) ? free_in_pool(p, freed) : next_free(p);
}

inline std::size_t usable_size(void* p) noexcept {
    return is_of_pool(p) ? detail::bytes_of_block_in_use(p) : next_usable_size(p);
}

/// The size of a request by `new`: one for 0 bytes gets a block of its own too.
inline std::size_t at_least_1(std::size_t bytes) noexcept {
    return bytes == 0 ? 1 : bytes;
}

/// Returns whether the library's own operators are used, and not others that the program defines.
bool has_own_delete() noexcept;
bool has_own_aligned_delete() noexcept;
/// Whether they are used for every `new` and `delete` of objects.
bool has_own_operators() noexcept;

/// Stores a block of `bytes` bytes in `to` and returns 0, or returns an error number. Leaves
/// `errno` unchanged unless the next allocator changes it. REQUIRES: `alignment` is a power of two
/// and at least the size of a pointer.
int allocate_aligned(void** to, std::size_t alignment, std::size_t bytes, AllocatedBy by) noexcept;

}  // namespace tensorpool::interpose
