#pragma once

/// What the pool takes beside the blocks it hands out. Each function wants a process of its own
/// that has not used the pool before.

#include <cstddef>

#include <tensorpool/memory_pool.hpp>

namespace perf {

/// Resident memory beside the spans of 256 MiB of blocks, relative to them.
struct Records {
    double in_use;  // while callers hold all blocks
    double freed;   // after all were given back
};
Records records(std::size_t block_bytes, tensorpool::Checks checks);

/// Resident bytes of a pool that was made and not used, what is set up once in a process included.
double idle_pool();

/// Resident bytes, and mappings, that 2,000 pools leave that come and go one after another.
double bytes_left_by_pools();
double mappings_left_by_pools();

/// Bytes in a thread's caches after it allocated one block of each bucket.
double parked();

/// Resident bytes above the start after blocks of 64 B to 64 MiB, 256 MiB of each size, were
/// allocated, written and given back, and `trim()` called.
double left_after_trim();

}  // namespace perf
