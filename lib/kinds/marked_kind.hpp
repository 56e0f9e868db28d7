#pragma once

#include "kinds/kind.hpp"

namespace tensorpool::kinds {

/// Small blocks of the pool's marked set. When one is freed, its mark (base/block_mark.hpp) refunds
/// a budget, ends a sample of the heap profile, or both.
Kind::Free free_marked;
Kind::Find find_marked;
Kind::Resize resize_marked;
Kind::RecordedBytes recorded_bytes_of_marked;

/// Takes a block of the marked set without the thread's cache. The caller sets its mark.
void* take_marked(PoolParts& pool, unsigned bucket, std::size_t bytes, blocks::CountAs count_as,
                  SlowPath& path) noexcept;
/// Sets or replaces the mark of a block of whole pages in use.
void mark_large(PoolParts& pool, Span& span, base::BlockMark& mark) noexcept;
/// Allocates a block of whole pages that is charged to the scope's budget.
void* allocate_charged_pages(PoolParts& pool, blocks::Cache* cache, const Request& request,
                             SlowPath& path) noexcept;

/// Returns the number of the budget that is charged for what the calling thread allocates now: the
/// pool's, or that of the thread's scope; 0 for none.
std::uint64_t charged_budget(const PoolParts& pool) noexcept;
/// Returns whether a scope charged the block in use at `p` to its budget. Takes no lock.
bool is_charged(PoolParts& pool, const void* p) noexcept;
/// Returns whether a resize to `bytes` bytes must move the block in use at `p`, so that it is
/// charged like a new one: a scope of the calling thread charges another budget than the one that
/// the block is charged to. Takes no lock.
bool must_charge(PoolParts& pool, const void* p, std::size_t bytes) noexcept;

// The route.
bool takes_charged(const PoolParts& pool, const Request& request) noexcept;
void* allocate_charged(PoolParts& pool, const Request& request, SlowPath& path) noexcept;

}  // namespace tensorpool::kinds
