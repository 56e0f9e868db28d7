#pragma once

#include "kinds/kind.hpp"

namespace tensorpool::kinds {

/// Small blocks, on spans of a bucket. Without checks, a stated size is believed.
Kind::Free free_small;
Kind::Find find_small;
Kind::Resize resize_small;
Kind::RecordedBytes recorded_bytes_of_small;

/// Takes a block of this bucket from the thread's cache or, for a thread without one, from spans.
void* allocate_block(PoolParts& pool, blocks::BucketSet& set, unsigned bucket,
                     const Request& request, SlowPath& path) noexcept;
/// Takes a block that the thread's cache has, in a pool with checks, without the rest of the slow
/// path. Returns nullptr if that is not possible.
void* take_parked_block(PoolParts& pool, std::size_t bytes) noexcept;
/// Takes a block from the thread's cache or the depot, if nothing else is to be done for the
/// request: the thread's inline paths see the cache, so no call is recorded, charged, checked or
/// shown to a tool; no watcher looks at the request; and the call is not the one after every 16th
/// trip, which does what the others leave out. Returns nullptr otherwise, and if there is no block.
void* take_exchanged_block(PoolParts& pool, const detail::ThreadCache& visible, std::size_t bytes,
                           Changes& changes) noexcept;
/// Gives a small block of the pool, freed with its size, to the thread's cache or the depot.
/// Returns false, and does nothing, if more is to be done for the call, or if the pool has no small
/// block at `p`.
bool give_exchanged_block(PoolParts& pool, const detail::ThreadCache& visible, void* p,
                          std::size_t bytes, Changes& changes) noexcept;
/// Gives a block whose use has ended to the thread's cache or to its span.
void free_block(PoolParts& pool, blocks::BucketSet& set, unsigned bucket, void* p,
                Changes& changes) noexcept;
/// What `p` refers to in a bucket of this set.
Found find_in(PoolParts& pool, blocks::BucketSet& set, unsigned bucket, const void* p) noexcept;
/// Resizes a block if its bucket stays the same.
void* resize_in_bucket(PoolParts& pool, blocks::Bucket& bucket, void* p, const Found& found,
                       std::size_t bytes) noexcept;

// Routes.
bool takes_small(const PoolParts& pool, const Request& request) noexcept;
void* allocate_small(PoolParts& pool, const Request& request, SlowPath& path) noexcept;
bool takes_finer(const PoolParts& pool, const Request& request) noexcept;
void* allocate_finer(PoolParts& pool, const Request& request, SlowPath& path) noexcept;

}  // namespace tensorpool::kinds
