#pragma once

#include "blocks/bucket_traits.hpp"

namespace tensorpool::blocks {

// The pages of spans that hold free blocks only, which `trim` returns to the system. REQUIRES: the
// span's shard is locked.

/// Counts the pages of the system that hold free blocks only.
unsigned free_pages(const BucketTraits& bucket, const pages::Span& span) noexcept;
/// Counts those that a block which has just become free reaches into.
unsigned free_pages_around(const BucketTraits& bucket, const pages::Span& span,
                           unsigned index) noexcept;
/// Records the number of such pages of a span, and how many of them are not in memory.
void set_free_memory(const BucketTraits& bucket, pages::Span& span, unsigned free_pages,
                     unsigned untouched_pages) noexcept;
/// Releases their memory.
void drop_free_pages(const BucketTraits& bucket, pages::Span& span) noexcept;

}  // namespace tensorpool::blocks
