#pragma once

#include "kinds/kind.hpp"
#include "kinds/marked_kind.hpp"
#include "kinds/route.hpp"
#include "watch/profile/profiled_blocks.hpp"

// What looks on: the heap profile and guards. Both take the slow path of a call when the countdown
// of a thread's cache (`bytes_to_sample`) does not suffice for a request.

namespace tensorpool::kinds {

/// Whether the heap profile may sample blocks of the pool. A tool that watches memory sees every
/// call, so all of them take the slow path.
bool is_profiled(const PoolParts& pool) noexcept;

/// What is decided when the countdown does not suffice for a request.
struct Sampled {
    void* block = nullptr;  // a guarded block that serves it
    double mean = 0;        // if the heap profile samples it, at this mean distance; otherwise 0
    std::uint64_t begun_ns = 0;  // when that was decided
};
/// Decides about a request. The result is empty if the countdown suffices.
Sampled sample_if_due(PoolParts& pool, blocks::Cache& cache, const Request& request) noexcept;
/// Notes that a sampled request was refused: it is tried again after free memory was gathered.
void owe_sample(blocks::Cache& cache, std::size_t bytes, double mean) noexcept;
/// Marks a block of the marked set as sampled. The sample covers the block's earlier mark.
void profile_marked(blocks::Cache& cache, pages::BlockStates::Mark& mark, const void* p,
                    std::size_t bytes, const Sampled& sampled) noexcept;

/// Returns a guarded block, or a small block of the marked set that the heap profile samples, or
/// nullptr if the request is to be served as any other.
void* allocate_sampled(PoolParts& pool, blocks::Cache& cache, const Request& request,
                       SlowPath& path) noexcept;
/// Serves a request for a block of whole pages by `allocate`, unless a guarded block serves it, and
/// samples the block if that is due.
using AllocatePages = void* (*)(PoolParts& pool, blocks::Cache* cache, const Request& request,
                                SlowPath& path) noexcept;
void* sample_pages(PoolParts& pool, const Request& request, SlowPath& path,
                   AllocatePages allocate) noexcept;
/// Notes that a block of whole pages was lengthened: it counts as a new one.
void profile_resized(PoolParts& pool, Span& span, std::size_t bytes) noexcept;

}  // namespace tensorpool::kinds
