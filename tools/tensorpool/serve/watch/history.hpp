#pragma once

/// @file
/// The history of a process and of each of its present pools.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <tensorpool/process_snapshot.hpp>

#include "serve/watch/metric_history.hpp"

namespace tensorpool::command::serve {

template <std::uint64_t PoolStatistics::*... bytes>
float sum_of(const PoolStatistics& pool) noexcept {
    return static_cast<float>(((pool.*bytes) + ...));
}

/// Returns NaN if there is no limit.
inline float limit_of(const PoolStatistics& pool) noexcept {
    return pool.limit_bytes == 0 ? std::numeric_limits<float>::quiet_NaN()
                                 : sum_of<&PoolStatistics::limit_bytes>(pool);
}

/// A series with the name that the page uses: a number of bytes, or a rate.
struct PoolSeries {
    const char* name;
    float (*bytes)(const PoolStatistics& pool) noexcept = nullptr;
    double PoolRates::*rate = nullptr;
};

inline constexpr PoolSeries pool_series[] = {
    {"in_use", sum_of<&PoolStatistics::in_use_bytes>},
    {"magazine", sum_of<&PoolStatistics::parked_bytes>},
    {"depot", sum_of<&PoolStatistics::depot_bytes>},
    {"span", sum_of<&PoolStatistics::span_bytes>},
    {"extent", sum_of<&PoolStatistics::cached_bytes, &PoolStatistics::free_bytes>},
    {"capacity", sum_of<&PoolStatistics::capacity_bytes>},
    {"limit", limit_of},
    {"from_magazines", nullptr, &PoolRates::from_magazines},
    {"from_depots", nullptr, &PoolRates::from_depots},
    {"from_spans", nullptr, &PoolRates::from_spans},
    {"from_extents", nullptr, &PoolRates::from_extents},
    {"from_system", nullptr, &PoolRates::from_system},
    {"allocated", nullptr, &PoolRates::allocated_bytes},
    {"rounding", nullptr, &PoolRates::rounding_ratio},
    {"hit_ratio", nullptr, &PoolRates::hit_ratio},
};
inline constexpr std::size_t series_count = std::size(pool_series);

using PoolSample = Sample<series_count>;
static_assert(sizeof(PoolSample) == 64, "16 numbers of 4 bytes, with the time");
using ProcessSample = Sample<1>;  ///< page faults per second

/// Used by one thread at a time.
class History {
public:
    /// Adds a snapshot. Snapshots must be added in the order of their times. The history of pools
    /// that a snapshot no longer includes is dropped.
    void add(const ProcessSnapshot& snapshot, const ProcessRates& rates);
    /// Returns the data of the event `history`: all samples taken before `time_ns` of the monotonic
    /// clock.
    std::string to_json(std::uint64_t process, std::uint64_t time_ns) const;

private:
    struct Pool {
        std::string name;
        MetricHistory<series_count> history;
    };

    void forget_missing(const ProcessSnapshot& snapshot);

    std::map<std::uint64_t, Pool> pools_;  ///< indexed by pool id
    MetricHistory<1> faults_;
    std::uint64_t start_ns_ = 0;  ///< monotonic clock
    std::int64_t unix_offset_ns_ =
        0;  ///< from the monotonic clock to the time of day, at the last snapshot
};

}  // namespace tensorpool::command::serve
