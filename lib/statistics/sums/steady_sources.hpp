#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <tensorpool/statistics.hpp>

#include "statistics/sums/sources.hpp"

namespace tensorpool::statistics {

/// Prevents totals from decreasing. Some totals are differences of two counters, such as the
/// allocations served by spans. A reader that was interrupted between the two reads may see a
/// smaller value than the last time. Prometheus would interpret that as a restarted program and
/// count the whole value again.
class SteadySources {
public:
    /// Replaces the totals of `pools` by their highest values so far, such that sums still add up.
    /// Pools that no longer exist are forgotten. Throws std::bad_alloc.
    void steady(std::vector<PoolStatistics>& pools);

private:
    struct OfPool {
        Sources buckets[detail::bucket_count];
        std::uint64_t allocated_bytes[detail::bucket_count] = {};
        Sources large;
    };
    static void steady(PoolStatistics& pool, OfPool& highest) noexcept;

    std::map<std::uint64_t, OfPool> highest_;  // by the pools' ids
};

}  // namespace tensorpool::statistics
