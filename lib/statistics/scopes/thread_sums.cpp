#include "statistics/scopes/thread_sums.hpp"

#include <numeric>

#include "base/block_sizes.hpp"

namespace tensorpool::statistics {
namespace {

using Blocks = std::array<std::uint64_t, detail::bucket_count>;

// Relaxed: a thread reads its own counters, or needs only one value of another thread's.
std::uint64_t read(const detail::Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}

std::uint64_t sum_of(const Blocks& blocks) noexcept {
    return std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0});
}

}  // namespace

void ThreadSums::add(const detail::ThreadCounters& counted, unsigned series) noexcept {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const std::uint64_t bytes = base::block_bytes(series, bucket);
        const unsigned row = base::row_of(series, bucket);
        const std::uint64_t allocated = read(counted.buckets[bucket].allocations);
        const std::uint64_t deallocated = read(counted.buckets[bucket].deallocations);
        allocations[row] += allocated;
        deallocations[row] += deallocated;
        small_allocated_bytes += allocated * bytes;
        small_deallocated_bytes += deallocated * bytes;
        requested_bytes += read(counted.buckets[bucket].requested_bytes);
    }
    requested_bytes += read(counted.large.requested_bytes);
    large_allocations += read(counted.large.allocations);
    large_allocated_bytes += read(counted.large.allocated_bytes);
    large_deallocations += read(counted.large.deallocations);
    large_deallocated_bytes += read(counted.large.deallocated_bytes);
}

void ThreadSums::add(const ThreadSums& more) noexcept {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        allocations[bucket] += more.allocations[bucket];
        deallocations[bucket] += more.deallocations[bucket];
    }
    small_allocated_bytes += more.small_allocated_bytes;
    small_deallocated_bytes += more.small_deallocated_bytes;
    requested_bytes += more.requested_bytes;
    large_allocations += more.large_allocations;
    large_allocated_bytes += more.large_allocated_bytes;
    large_deallocations += more.large_deallocations;
    large_deallocated_bytes += more.large_deallocated_bytes;
}

void ThreadSums::subtract(const ThreadSums& less) noexcept {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        allocations[bucket] -= less.allocations[bucket];
        deallocations[bucket] -= less.deallocations[bucket];
    }
    small_allocated_bytes -= less.small_allocated_bytes;
    small_deallocated_bytes -= less.small_deallocated_bytes;
    requested_bytes -= less.requested_bytes;
    large_allocations -= less.large_allocations;
    large_allocated_bytes -= less.large_allocated_bytes;
    large_deallocations -= less.large_deallocations;
    large_deallocated_bytes -= less.large_deallocated_bytes;
}

std::uint64_t ThreadSums::allocation_count() const noexcept {
    return sum_of(allocations) + large_allocations;
}

std::uint64_t ThreadSums::deallocation_count() const noexcept {
    return sum_of(deallocations) + large_deallocations;
}

std::uint64_t net_bytes(const detail::ThreadCounters& counted, unsigned series) noexcept {
    std::uint64_t bytes =
        read(counted.large.allocated_bytes) - read(counted.large.deallocated_bytes);
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const detail::BucketCounters& blocks = counted.buckets[bucket];
        bytes += (read(blocks.allocations) - read(blocks.deallocations)) *
                 base::block_bytes(series, bucket);
    }
    return bytes;
}

}  // namespace tensorpool::statistics
