#pragma once

#include <tensorpool/detail/address_range.hpp>
#include <tensorpool/memory_pool.hpp>

#include "blocks/bucket_layout.hpp"
#include "interpose/minimum.hpp"
#include "interpose/next_allocator.hpp"

namespace tensorpool::interpose {

/// The number of calls of this thread on the pool that are in progress and may take its locks.
/// While it is not 0, the next allocator serves the thread's requests: they may come from the pool
/// itself, or from the C library on its behalf, under one of those locks.
extern constinit thread_local unsigned visits
    [[gnu::visibility("hidden"), gnu::tls_model("initial-exec")]];

inline bool is_inside_pool() noexcept {
    return visits != 0;
}

/// Returns whether this thread must not call the pool: it is inside a call, or in a child that was
/// made without the handlers of a fork by a process with other threads. These may have held the
/// pool's locks, which are not released in the child: the thread then stays inside for good.
bool must_stay_out() noexcept;
/// Returns whether the thread stays out for good.
bool stays_out() noexcept;

/// Frees a block of the pool from inside a visit: the block is freed when the last call has ended.
/// The list is kept in the first bytes of the blocks, which are no longer in use.
void free_when_outside(void* p) noexcept;

/// Begins and ends a visit. Leaving the outermost visit frees the blocks that were set aside.
void enter_pool() noexcept;
void leave_pool() noexcept;

/// A call on the pool, as a scope.
class Visit {
public:
    Visit() noexcept { enter_pool(); }
    ~Visit() { leave_pool(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
};

}  // namespace tensorpool::interpose

/// The pool, adapted to malloc: no function throws, and a refused request sets `errno`.
namespace tensorpool::interpose {

/// Returns whether `p` may belong to the pool. Other mappings may lie between the pool's ranges.
inline bool may_be_of_pool(const void* p) noexcept {
    return detail::pool_addresses.contains(p);
}
/// Returns whether `p` belongs to a block of the pool.
inline bool is_of_pool(const void* p) noexcept {
    return may_be_of_pool(p) && detail::lies_in_a_pool(p);
}

// REQUIRES: `bytes` is not 0. Calls from inside the pool are served by the next allocator. So are
// requests that the pool cannot serve, unless a limit that the user set refuses them.
// Checks::hardened alone looks at the function that allocates.
using detail::AllocatedBy;
inline void* allocate_in_pool(std::size_t bytes, AllocatedBy by) noexcept;
void* allocate_slowly(std::size_t bytes, AllocatedBy by) noexcept;
void* allocate_zeroed_in_pool(std::size_t bytes) noexcept;
/// Allocates `bytes` bytes. REQUIRES: `alignment` is a power of two.
void* allocate_aligned_in_pool(std::size_t bytes, std::size_t alignment, AllocatedBy by) noexcept;
/// Records, for Checks::hardened, that an operator for arrays allocated the block, if the library's
/// own operator for objects did.
void* as_array(void* block) noexcept;

// REQUIRES: `p` belongs to the pool.
/// Makes the block longer or shorter, to `bytes` bytes, without a copy, and returns it. Returns
/// nullptr, with the block unchanged, if that is impossible.
void* resize_in_pool(void* p, std::size_t bytes) noexcept;

/// Returns whether the block may be charged to a budget, or the thread may be inside a scope of
/// one. False for most threads of programs without budgets.
inline bool may_have_budget(const void* p) noexcept {
    const detail::ThreadCache& cache = detail::first_thread_cache();
    return cache.counters == nullptr || cache.is_guarded_or_null(p);
}
/// Returns whether a resize to `bytes` bytes must move the block, because a scope of the thread
/// does not charge it yet.
inline bool must_charge(const void* p, std::size_t bytes) noexcept {
    return may_have_budget(p) && !is_inside_pool() && detail::GlobalPool::must_charge(p, bytes);
}

// REQUIRES: `p` may belong to the pool. A pointer that does not is passed to the next allocator.
// Checks::hardened alone looks at what the function and its arguments state about the block.
using detail::FreedAs;
inline void free_in_pool(void* p, const FreedAs& freed) noexcept;
void free_slowly(void* p, std::size_t bytes, std::size_t alignment, AllocatedBy by) noexcept;

/// Returns the calling thread's cache of the global pool for a series of sizes. The finer series
/// have the numbers that follow the pool's own.
inline detail::ThreadCache& thread_cache(unsigned series) noexcept {
    return *detail::thread_table->first.caches[detail::GlobalPool::number + series].load(
        std::memory_order_relaxed);
}

inline void* allocate_in_pool(std::size_t bytes, AllocatedBy by) noexcept {
    if (bytes <= detail::largest_block_bytes && !is_inside_pool()) [[likely]] {
        const base::BlockSize size = base::finest_size(bytes);
        void* const block = thread_cache(size.series).pop(size.bucket, bytes);
        if (block != nullptr) [[likely]]
            return block;
    }
    return allocate_slowly(bytes, by);
}

inline void free_in_pool(void* p, const FreedAs& freed) noexcept {
    const pages::PageEntry entry(detail::pool_addresses.page_word(p));
    const bool may_be_pushed = entry.pool_number() == detail::GlobalPool::number &&
                               blocks::may_begin_block(p, entry) && !is_inside_pool();
    if (!may_be_pushed || !thread_cache(entry.series()).push(entry.bucket(), p)) [[unlikely]]
        free_slowly(p, freed.bytes, freed.alignment, freed.by);
}

}  // namespace tensorpool::interpose

/// The parts of the exported functions: which allocator serves a request, and which one owns a
/// block.
namespace tensorpool::interpose {

/// Calls the next allocator. Not inline, so that requests which the pool serves save no registers.
void* allocate_behind(std::size_t bytes) noexcept;

inline void* allocate(std::size_t bytes, AllocatedBy by) noexcept {
    return is_for_pool(bytes) ? allocate_in_pool(bytes, by) : allocate_behind(bytes);
}

inline void deallocate(void* p, const FreedAs& freed) noexcept {
    return may_be_of_pool(p) ? free_in_pool(p, freed) : next_free(p);
}

/// Returns the usable bytes of a block of a hardened pool, whose exact size lies behind a lock. If
/// the thread stays out for good, up to those of its bucket.
std::size_t hardened_size(const void* p) noexcept;

inline std::size_t usable_size(void* p) noexcept {
    if (!is_of_pool(p)) return next_usable_size(p);
    return is_hardened() ? hardened_size(p) : detail::bytes_of_block_in_use(p);
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
