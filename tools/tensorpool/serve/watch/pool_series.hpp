#pragma once

/// @file
/// What is kept of a pool's past: at most 16 numbers of 4 bytes a sample, the time among them.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command::serve {

template <std::uint64_t PoolStatistics::*... bytes>
float sum_of(const PoolStatistics& pool) noexcept {
    return static_cast<float>(((pool.*bytes) + ...));
}

/// NaN where there is no limit.
inline float limit_of(const PoolStatistics& pool) noexcept {
    return pool.limit_bytes == 0 ? std::numeric_limits<float>::quiet_NaN()
                                 : sum_of<&PoolStatistics::limit_bytes>(pool);
}

/// A series under the name that the page has for it: of bytes, or of a rate.
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

}  // namespace tensorpool::command::serve
