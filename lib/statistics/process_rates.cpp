#include <algorithm>
#include <string>

#include <tensorpool/process_snapshot.hpp>

#include "statistics/number_text.hpp"
#include "statistics/report_parts.hpp"
#include "statistics/sources.hpp"

namespace tensorpool {
namespace {

using statistics::Sources;
using statistics::sources_of;

struct RateField {
    const char* name;
    double PoolRates::*value;
};

constexpr RateField rate_fields[] = {
    {"seconds", &PoolRates::seconds},
    {"allocations", &PoolRates::allocations},
    {"deallocations", &PoolRates::deallocations},
    {"requested_bytes", &PoolRates::requested_bytes},
    {"allocated_bytes", &PoolRates::allocated_bytes},
    {"from_magazines", &PoolRates::from_magazines},
    {"from_depots", &PoolRates::from_depots},
    {"from_spans", &PoolRates::from_spans},
    {"from_extents", &PoolRates::from_extents},
    {"from_system", &PoolRates::from_system},
    {"failures", &PoolRates::failures},
    {"hit_ratio", &PoolRates::hit_ratio},
    {"rounding_ratio", &PoolRates::rounding_ratio},
};

double growth(std::uint64_t older, std::uint64_t newer) noexcept {
    return newer > older ? static_cast<double>(newer - older) : 0.0;
}

/// Turns growths into rates, for one pair of snapshots.
struct Interval {
    double seconds;

    double rate(std::uint64_t older, std::uint64_t newer) const noexcept {
        return seconds > 0 ? growth(older, newer) / seconds : 0.0;
    }

    void add_sources(PoolRates& rates, const Sources& older, const Sources& newer) const noexcept {
        rates.from_magazines = rate(older.magazines, newer.magazines);
        rates.from_depots = rate(older.depots, newer.depots);
        rates.from_spans = rate(older.spans, newer.spans);
        rates.from_extents = rate(older.extents, newer.extents);
        rates.from_system = rate(older.system, newer.system);
    }

    PoolRates rates(const PoolStatistics& older, const PoolStatistics& newer) const noexcept {
        PoolRates rates;
        rates.pool = newer.id;
        rates.seconds = seconds;
        rates.allocations = rate(older.allocations, newer.allocations);
        rates.deallocations = rate(older.deallocations, newer.deallocations);
        rates.requested_bytes = rate(older.requested_bytes, newer.requested_bytes);
        rates.allocated_bytes = rate(older.allocated_bytes, newer.allocated_bytes);
        rates.failures = rate(older.failures, newer.failures);
        add_sources(rates, sources_of(older), sources_of(newer));
        const double hits = rate(older.cache_hits, newer.cache_hits);
        rates.hit_ratio = rates.allocations > 0 ? std::min(hits / rates.allocations, 1.0) : 1.0;
        if (rates.allocated_bytes > rates.requested_bytes) {
            rates.rounding_ratio = 1 - rates.requested_bytes / rates.allocated_bytes;
        }
        return rates;
    }
};

std::string json_of(const PoolRates& rates) {
    std::string out = "{\"pool\":" + std::to_string(rates.pool);
    for (const RateField& field : rate_fields) {
        out += ',' + statistics::quoted(field.name) + ':' +
               statistics::number_text(rates.*field.value);
    }
    return out + '}';
}

}  // namespace

ProcessRates difference(const ProcessSnapshot& older, const ProcessSnapshot& newer) {
    const Interval interval = {growth(older.time_ns, newer.time_ns) / 1e9};
    ProcessRates rates;
    rates.seconds = interval.seconds;
    rates.minor_faults = interval.rate(older.minor_faults, newer.minor_faults);
    for (const PoolStatistics& pool : newer.pools) {
        const auto before =
            std::find_if(older.pools.begin(), older.pools.end(),
                         [&](const PoolStatistics& one) { return one.id == pool.id; });
        if (before != older.pools.end()) rates.pools.push_back(interval.rates(*before, pool));
    }
    return rates;
}

std::string to_json(const ProcessRates& rates) {
    std::string out = "{\"seconds\":" + statistics::number_text(rates.seconds) +
                      ",\"minor_faults\":" + statistics::number_text(rates.minor_faults) +
                      ",\"pools\":[";
    for (const PoolRates& pool : rates.pools) {
        if (&pool != &rates.pools.front()) out += ',';
        out += json_of(pool);
    }
    return out + "]}";
}

}  // namespace tensorpool
