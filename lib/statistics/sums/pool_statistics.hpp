#pragma once

#include <tensorpool/statistics.hpp>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Sums the counters of a pool's threads. The frees of all threads must be added before the
/// allocations, so that the bytes in use are never negative.
class PoolSums {
public:
    /// Adds counters of blocks of this series of sizes (base/block_sizes.hpp).
    void add_frees(const detail::ThreadCounters& thread, unsigned series) noexcept;
    void add_allocations(const detail::ThreadCounters& thread, unsigned series) noexcept;

    /// Returns the statistics of the pool: the sums, and what is counted once for the pool.
    PoolStatistics with(const PoolRecord& pool) const noexcept;

private:
    void fill_in(PoolStatistics& statistics) const noexcept;

    struct Bucket {
        std::uint64_t freed_bytes = 0;
        std::uint64_t returned_bytes = 0;
        std::uint64_t taken_bytes = 0;
        BucketStatistics statistics = {};
    };
    Bucket buckets_[detail::bucket_count];
    std::uint64_t freed_large_bytes_ = 0;
    LargeStatistics large_ = {};
};

/// Returns the statistics of a pool, for the pool itself and for readers of its segment.
/// `for_each(function)` calls `function` with the counters of each thread and the shared ones, and
/// with their series of sizes. It is called twice, and `between_frees_and_allocations` in between.
template <class ForEach, class Between>
PoolStatistics statistics_of(const PoolRecord& pool, const ForEach& for_each,
                             const Between& between_frees_and_allocations) {
    PoolSums sums;
    for_each([&](const detail::ThreadCounters& thread, unsigned series) {
        sums.add_frees(thread, series);
    });
    between_frees_and_allocations();
    for_each([&](const detail::ThreadCounters& thread, unsigned series) {
        sums.add_allocations(thread, series);
    });
    return sums.with(pool);
}

/// Returns the free bytes in the magazines of one thread.
std::uint64_t parked_bytes_of(const detail::ThreadCounters& thread, unsigned series) noexcept;

}  // namespace tensorpool::statistics
