#pragma once

#include "kinds/block_server.hpp"

namespace tensorpool::kinds {

/// Blocks of memory that the global pool lent to a plan (pages/page_map.hpp).
Kind::Free free_served;
Kind::Find find_served;
Kind::Resize resize_served;
Kind::RecordedBytes recorded_bytes_of_served;

/// Lends a span of at least `bytes` bytes to `borrower`. It leaves the capacity, but not the commit
/// budget. If free memory does not suffice, all of it is given back before the pool grows. Returns
/// nullptr, with the reason in `path`, if it cannot.
Span* lend(PoolParts& pool, std::size_t bytes, std::size_t alignment,
           const pages::ServedMemory& borrower, SlowPath& path) noexcept;
/// Takes a lent span back, as free memory. Afterwards, no look-up reaches the borrower.
void take_back(PoolParts& pool, Span& span, Changes& changes) noexcept;

/// Marks a block of whole pages in use as one whose free is noted by a server. Returns false if `p`
/// is no such block. The caller holds the block.
bool note_free_of(PoolParts& pool, void* p) noexcept;
/// Ends what `note_free_of` began. REQUIRES: the lock of `block_servers` is held.
void forget_free_of(PoolParts& pool, void* p) noexcept;
/// Lets a server note the free of the block at `p`, if it is marked. Afterwards it is not.
void note_free(PoolParts& pool, void* p) noexcept;

// The route.
bool takes_lent(const PoolParts& pool, const Request& request) noexcept;
void* allocate_lent(PoolParts& pool, const Request& request, SlowPath& path) noexcept;

}  // namespace tensorpool::kinds
