#include "explain/free_memory.hpp"

#include <algorithm>
#include <cmath>

namespace tensorpool::command::explain {
namespace {

constexpr std::uint64_t page_bytes = 4096;

/// Returns the estimated part of a bucket's parked bytes in pages without blocks in use, if the
/// blocks in use lie at random in the pages that are not entirely free. `in_free_pages` is the part
/// of all spans in free pages.
double free_of_neighbours(const BucketStatistics& bucket, double in_free_pages) {
    if (bucket.in_use_bytes == 0) return 1;
    const double bytes = bucket.allocations == 0
                             ? static_cast<double>(bucket.block_bytes)
                             : ratio(bucket.allocated_bytes, bucket.allocations);
    // Blocks of finer sizes, and those from a page on, do not begin at pages. Such a page holds
    // parts of one block more.
    const bool is_aligned = bucket.block_bytes < page_bytes &&
                            std::lround(bytes) == static_cast<long>(bucket.block_bytes);
    const double others = static_cast<double>(page_bytes) / bytes - (is_aligned ? 1 : 0);
    const std::uint64_t pages = times(bucket.capacity_bytes, 1 - in_free_pages);
    const double used = std::min(ratio(bucket.in_use_bytes, pages), 1.0);
    return std::pow(1 - used, std::max(others, 0.0));
}

}  // namespace

double ratio(std::uint64_t part, std::uint64_t of) {
    return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
}

std::uint64_t times(std::uint64_t bytes, double factor) {
    const std::uint64_t at_most = std::min(bytes, std::uint64_t{1} << 52);
    const auto product = std::llround(static_cast<double>(at_most) * factor);
    return std::min(at_most, static_cast<std::uint64_t>(product));
}

FreeMemory::FreeMemory(const PoolStatistics& pool) {
    pages = above(pool.free_bytes, pool.untouched_bytes);
    prepared =
        std::min(pages, above(pool.prepared_bytes, above(pool.capacity_bytes, pool.free_bytes)));
    pages -= prepared;
    cached = pool.large.cached_bytes;
    parked = parked_back = pool.large.parked_bytes;
    waiting = sum(pool.quarantined_bytes, pool.lost_bytes);
    std::uint64_t capacity = 0;
    for (const BucketStatistics& bucket : pool.buckets) {
        capacity = sum(capacity, bucket.capacity_bytes);
    }
    const double in_free_pages =
        std::min(ratio(sum(pool.trimmable_span_bytes, pool.untouched_span_bytes), capacity), 1.0);
    for (const BucketStatistics& bucket : pool.buckets) add(bucket, in_free_pages);
    // Small blocks that wait are not in their spans, like those of the depot.
    depot = above(depot, waiting);
    depot_back = std::min(depot_back, depot);
    pinned = above(pinned, pool.untouched_span_bytes);
    spans = std::min(pinned, pool.trimmable_span_bytes);
    pinned -= spans;
}

void FreeMemory::add(const BucketStatistics& bucket, double in_free_pages) {
    const double back = free_of_neighbours(bucket, in_free_pages);
    parked = sum(parked, bucket.parked_bytes);
    parked_back = sum(parked_back, times(bucket.parked_bytes, back));
    depot = sum(depot, bucket.depot_bytes);
    depot_back = sum(depot_back, times(bucket.depot_bytes, back));
    const std::uint64_t out =
        sum(bucket.in_use_bytes, sum(bucket.parked_bytes, bucket.depot_bytes));
    pinned = sum(pinned, above(bucket.capacity_bytes, out));
}

std::uint64_t FreeMemory::all() const {
    std::uint64_t bytes = 0;
    for (const std::uint64_t one :
         {prepared, pages, cached, parked, depot, spans, pinned, waiting}) {
        bytes = sum(bytes, one);
    }
    return bytes;
}

}  // namespace tensorpool::command::explain
