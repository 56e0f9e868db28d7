#pragma once

#include "blocks/bucket_depot.hpp"
#include "blocks/bucket_spans.hpp"

namespace tensorpool::blocks {

/// One size class of one pool. Every block that was carved from a span is in exactly one state: in
/// use, in a thread's magazine, in the depot, or home. A block is *home* when it is free and its
/// bit in its span is set. Thread-safe.
struct Bucket {
    Bucket(unsigned number, const BucketSources& sources) noexcept
        : traits(number, sources), spans(traits), depot(spans) {}
    Bucket(const Bucket&) = delete;
    Bucket& operator=(const Bucket&) = delete;

    const BucketTraits traits;
    BucketSpans spans;
    /// The magazines through which threads exchange free blocks.
    BucketDepot depot;
};

}  // namespace tensorpool::blocks
