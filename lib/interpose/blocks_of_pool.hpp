#pragma once

#include <cstddef>

#include <tensorpool/detail/address_range.hpp>
#include <tensorpool/detail/thread_cache.hpp>
#include <tensorpool/memory_pool.hpp>

#include "base/block_sizes.hpp"
#include "blocks/bucket_layout.hpp"
#include "interpose/visit.hpp"
#include "pages/page_map.hpp"

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
inline void* allocate_in_pool(std::size_t bytes) noexcept;
void* allocate_slowly(std::size_t bytes) noexcept;
void* allocate_zeroed_in_pool(std::size_t bytes) noexcept;
/// `alignment` is a power of two.
void* allocate_aligned_in_pool(std::size_t bytes, std::size_t alignment) noexcept;

// REQUIRES: `p` is of the pool.
/// The block with room for `bytes`, without a copy; nullptr, and it is as it was, where that cannot
/// be had.
void* lengthen_in_pool(void* p, std::size_t bytes) noexcept;
// REQUIRES: `p` may be of the pool. What is not goes to the next allocator.
inline void free_in_pool(void* p) noexcept;
void free_slowly(void* p) noexcept;

/// The calling thread's of the global pool: those of its finer series have the numbers behind its
/// own.
inline detail::ThreadCache& thread_cache(unsigned series) noexcept {
    return *detail::thread_table->first.caches[detail::GlobalPool::number + series].load(
        std::memory_order_relaxed);
}

inline void* allocate_in_pool(std::size_t bytes) noexcept {
    if (bytes <= detail::largest_block_bytes && !is_inside_pool()) [[likely]] {
        const base::BlockSize size = base::finest_size(bytes);
        void* const block = thread_cache(size.series).pop(size.bucket, bytes);
        if (block != nullptr) [[likely]]
            return block;
    }
    return allocate_slowly(bytes);
}

inline void free_in_pool(void* p) noexcept {
    const pages::PageEntry entry(detail::pool_addresses.page_word(p));
    const bool may_be_pushed = entry.pool_number() == detail::GlobalPool::number &&
                               blocks::may_begin_block(p, entry) && !is_inside_pool();
    if (!may_be_pushed || !thread_cache(entry.series()).push(entry.bucket(), p)) [[unlikely]]
        free_slowly(p);
}

}  // namespace tensorpool::interpose
