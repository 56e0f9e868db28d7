#pragma once

/// Memory that the pool takes beyond the blocks that it hands out. Call each function in a process
/// of its own that has not used the pool before.

#include <cstddef>

#include <tensorpool/memory_pool.hpp>

namespace perf {

/// Resident memory beyond the spans of 256 MiB of blocks, relative to these spans.
struct Records {
    double in_use;  // while all blocks are in use
    double freed;   // after all blocks were freed
};
Records records(std::size_t block_bytes, tensorpool::Checks checks);

/// Returns the resident bytes of a pool that was made and not used. They include what is set up
/// once per process.
double idle_pool();

/// Return the resident bytes and the mappings that stay after 2,000 pools were made and destroyed,
/// one after another.
double bytes_left_by_pools();
double mappings_left_by_pools();

/// Returns the bytes in a thread's caches after it allocated one block of each bucket.
double parked();

/// Returns by how many bytes resident memory grew after blocks of 64 B to 64 MiB, 256 MiB of each
/// size, were allocated, written and freed, and `trim()` was called.
double left_after_trim();

}  // namespace perf
