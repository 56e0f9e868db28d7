#pragma once

#include "kinds/block_server.hpp"

// The functions of each kind, and of its routes.

namespace tensorpool::kinds {

// Small blocks ----------------------------------------------------------------------------------

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

// Blocks of whole pages -------------------------------------------------------------------------

/// Blocks of whole pages, and pages on which no caller has a block. The look-up of such a block
/// yields all that a check needs, so every free is checked in every pool.
Kind::Free free_pages;
Kind::Find find_pages;
Kind::Resize resize_pages;
Kind::RecordedBytes recorded_bytes_of_pages;

/// Blocks of whole pages whose free a server notes (block_server.hpp) before it happens.
Kind::Free free_noted;

/// Takes the block of whole pages that the thread freed last, if its size fits, without the rest of
/// the slow path. Returns nullptr if that is not possible.
void* take_last_pages(PoolParts& pool, std::size_t bytes) noexcept;
/// Like `take_last_pages`, and also takes other blocks of the thread's, and those that all threads
/// share.
void* take_free_pages(PoolParts& pool, std::size_t bytes) noexcept;
/// Takes a block for at least `bytes` bytes from the thread's cache or from the page heap.
void* allocate_whole_pages(PoolParts& pool, blocks::Cache* cache, const Request& request,
                           SlowPath& path) noexcept;
/// Frees a block of whole pages whose pointer was checked. Returns whether it is time to look after
/// retention, which this function has done then.
bool free_large(PoolParts& pool, Span& span, Changes& changes) noexcept;
/// Makes the block in use at `p` longer or shorter without copying its content, so that it holds
/// `bytes` bytes. Returns the address of the block, which changes if its pages were moved. Returns
/// nullptr and leaves the block unchanged if it cannot grow, is not a block of whole pages of this
/// pool, or would have as many pages as before or none.
void* resize_without_copy(PoolParts& pool, void* p, std::size_t bytes, SlowPath& path) noexcept;
/// Returns whether whole pages for which `found` stands may serve a block of `bytes` bytes in
/// place: at least half of them stays in use.
bool shrinks_in_place(const Found& found, std::size_t bytes) noexcept;
/// Touches what was committed for this block, up to the requested bytes. If the system refuses, the
/// caller's first access touches the pages.
void prefault(PoolParts& pool, void* block, std::size_t bytes, const Changes& changes) noexcept;

/// Whether a request for so many bytes at this alignment can be a block of whole pages. If not,
/// `path.refusal` says why.
bool is_possible_size(const Request& request, SlowPath& path) noexcept;

// The route.
bool takes_any(const PoolParts& pool, const Request& request) noexcept;
void* allocate_large(PoolParts& pool, const Request& request, SlowPath& path) noexcept;

// Marked blocks ---------------------------------------------------------------------------------

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

/// Frees a block that the thread's scope charges by exposing it again, so that the thread's inline
/// path may take it. Returns false, and does nothing, if that is impossible or any call is
/// observed.
bool free_exposed(PoolParts& pool, void* p) noexcept;

// The route.
bool takes_charged(const PoolParts& pool, const Request& request) noexcept;
void* allocate_charged(PoolParts& pool, const Request& request, SlowPath& path) noexcept;

// Blocks of plans -------------------------------------------------------------------------------

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

// Hardened pools --------------------------------------------------------------------------------
//
// A freed block waits in the quarantine: a small one filled with zeros, one of whole pages
// inaccessible. Every block has a canary behind what was requested, and one of whole pages also a
// page that may not be accessed.

Kind::Free free_hardened_small;
/// Also for pages without a block.
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
