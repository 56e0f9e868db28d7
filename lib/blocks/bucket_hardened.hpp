#pragma once

#include <cstdint>

#include "blocks/bucket_traits.hpp"

namespace tensorpool::blocks {

// Spans of hardened pools.

/// The pages at the end of a span that may not be accessed.
pages::PageCount span_guard_pages() noexcept;
/// Fills a new span with zeros, makes its end inaccessible, and all its blocks home.
void harden(pages::PageHeap& heap, pages::Span& span) noexcept;
/// Makes the end of a span accessible again, before the span is freed. Returns false if the system
/// refuses: the span can then never be used again.
bool soften(pages::PageHeap& heap, const pages::Span& span) noexcept;

/// Takes up to `max_count` blocks that are home in random order, and returns their number. `random`
/// is the state of a generator, 0 before its first use.
unsigned take_at_random(const BucketTraits& bucket, pages::Span& span, void** blocks,
                        unsigned max_count, std::uint64_t& random) noexcept;

}  // namespace tensorpool::blocks
