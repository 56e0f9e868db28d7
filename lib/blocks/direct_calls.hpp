#pragma once

#include <cstddef>
#include <cstdint>

#include "blocks/bucket_set.hpp"

namespace tensorpool::blocks {

// Calls without a thread's cache. They count with the counters that all threads share.

/// Takes one block from the spans, for threads without a cache and for samples. Returns nullptr if
/// memory is refused. A sample counts as a hit: its thread's cache was not asked.
enum class CountAs : std::uint8_t { miss, hit };
void* allocate_direct(BucketSet& set, unsigned bucket, std::size_t requested_bytes,
                      pages::SlowPath& path, CountAs count_as = CountAs::miss) noexcept;
/// Returns one block to its span, for threads without a cache.
void deallocate_direct(BucketSet& set, unsigned bucket, void* block,
                       pages::Changes& changes) noexcept;
/// Returns blocks, whose frees were counted before, to their spans.
void return_direct(BucketSet& set, unsigned bucket, void* const* blocks, unsigned count,
                   pages::Changes& changes) noexcept;

}  // namespace tensorpool::blocks
