#pragma once

#include "kinds/bucket_kind.hpp"
#include "kinds/large_kind.hpp"

// Blocks of pools with Checks::hardened. A freed block waits in the quarantine: a small one filled
// with zeros, one of whole pages inaccessible. Every block has a canary behind what was requested,
// and one of whole pages also a page that may not be accessed.

namespace tensorpool::kinds {

/// Small blocks of hardened pools.
Kind::Free free_hardened_small;

/// Blocks of whole pages of hardened pools, and pages without a block.
Kind::Free free_hardened_pages;

/// Checks that a block from a magazine is unused and unwritten, and begins its use.
void begin_hardened_use(PoolParts& pool, void* p, std::size_t bytes, unsigned bucket,
                        pages::BlockOrigin origin) noexcept;
/// Returns all blocks of the quarantine to their spans.
void empty_quarantine(PoolParts& pool, Changes& changes) noexcept;
/// See detail::record_allocated_by.
void record_allocated_by(PoolParts& pool, void* block, detail::AllocatedBy by) noexcept;
/// Allocates a block of its own for a `malloc` of 0 bytes, none of which may be accessed.
void* allocate_nothing(PoolParts& pool, std::size_t alignment, SlowPath& path) noexcept;
/// Prepares a pool that is being made.
void harden(PoolParts& pool) noexcept;

// The route.
void* allocate_hardened(PoolParts& pool, const Request& request, SlowPath& path) noexcept;

}  // namespace tensorpool::kinds
