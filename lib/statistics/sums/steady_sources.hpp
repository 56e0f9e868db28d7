#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <tensorpool/statistics.hpp>

#include "statistics/report/sources.hpp"

namespace tensorpool::statistics {

/// Keeps totals from going back. Some are differences of two counters, such as the allocations that
/// spans served; a reader that lost its core between the two sees a little less than the last time.
/// Prometheus would take that for a program that started anew, and count all of it again.
class SteadySources {
public:
    /// Puts the highest so far into the figures, which then add up as before. Figures of pools that
    /// are not there any more are forgotten. Throws std::bad_alloc.
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
