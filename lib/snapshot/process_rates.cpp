#include "read/record_text.hpp"
#include "snapshot/typed_records.hpp"
#include "statistics/sums/steady_sources.hpp"

namespace tensorpool {
namespace {

using statistics::Sources;
using statistics::sources_of;

/// A rate of a pool, and the total whose growth it is; null if the rate is computed otherwise.
struct Rate {
    const char* name;
    double PoolRates::*value;
    std::uint64_t PoolStatistics::*total = nullptr;
};

constexpr Rate pool_rates[] = {
    {"seconds", &PoolRates::seconds},
    {"allocations", &PoolRates::allocations, &PoolStatistics::allocations},
    {"deallocations", &PoolRates::deallocations, &PoolStatistics::deallocations},
    {"requested_bytes", &PoolRates::requested_bytes, &PoolStatistics::requested_bytes},
    {"allocated_bytes", &PoolRates::allocated_bytes, &PoolStatistics::allocated_bytes},
    {"from_magazines", &PoolRates::from_magazines},
    {"from_depots", &PoolRates::from_depots},
    {"from_spans", &PoolRates::from_spans},
    {"from_extents", &PoolRates::from_extents},
    {"from_system", &PoolRates::from_system},
    {"failures", &PoolRates::failures, &PoolStatistics::failures},
    {"hit_ratio", &PoolRates::hit_ratio},
    {"rounding_ratio", &PoolRates::rounding_ratio},
};

double growth(std::uint64_t older, std::uint64_t newer) noexcept {
    return newer > older ? static_cast<double>(newer - older) : 0.0;
}

/// Computes rates from the growth between two snapshots.
struct Interval {
    double seconds;

    double rate(std::uint64_t older, std::uint64_t newer) const noexcept {
        return seconds > 0 ? growth(older, newer) / seconds : 0.0;
    }

    static double hit_ratio(double hits, double all) noexcept {
        return all > 0 ? std::min(hits / all, 1.0) : 1.0;
    }

    PoolRates of_pool(const PoolStatistics& older, const PoolStatistics& newer) const noexcept {
        PoolRates rates;
        rates.pool = newer.id;
        rates.seconds = seconds;
        for (const auto& [name, value, total] : pool_rates) {
            if (total != nullptr) rates.*value = rate(older.*total, newer.*total);
        }
        const Sources before = sources_of(older);
        const Sources now = sources_of(newer);
        double* const to[] = {&rates.from_magazines, &rates.from_depots, &rates.from_spans,
                              &rates.from_extents, &rates.from_system};
        for (std::size_t i = 0; i != now.size(); ++i) *to[i] = rate(before[i], now[i]);
        rates.hit_ratio = hit_ratio(rate(older.cache_hits, newer.cache_hits), rates.allocations);
        if (rates.allocated_bytes > rates.requested_bytes) {
            rates.rounding_ratio = 1 - rates.requested_bytes / rates.allocated_bytes;
        }
        return rates;
    }

    /// Returns the rates of the pools that are in both snapshots.
    std::vector<PoolRates> of_pools(const std::vector<PoolStatistics>& older,
                                    const std::vector<PoolStatistics>& newer) const {
        std::vector<PoolRates> all;
        for (const PoolStatistics& now : newer) {
            const auto before = std::ranges::find(older, now.id, &PoolStatistics::id);
            if (before != older.end()) all.push_back(of_pool(*before, now));
        }
        return all;
    }

    /// Returns the rates of the records that are in both groups.
    std::vector<RecordRates> of_records(const RecordGroup& older, const RecordGroup& newer) const {
        const statistics::RecordTable& table = *newer.table;
        std::vector<RecordRates> all;
        for (const RecordGroup::Record& now : newer.records) {
            const auto before = std::ranges::find(older.records, now.id, &RecordGroup::Record::id);
            if (before == older.records.end()) continue;
            const auto rate_of = [&](std::size_t i) {
                return rate(before->values[i], now.values[i]);
            };
            RecordRates& rates = all.emplace_back();
            rates.of = table.of;
            rates.id = now.id;
            for (std::size_t i = 0; i != table.shown(); ++i) {
                if (table.fields[i].kind != statistics::MetricKind::total) continue;
                rates.values.emplace(table.fields[i].name.view(), rate_of(i));
            }
            rates.values["hit_ratio"] = hit_ratio(rate_of(table.hits), rate_of(table.requests));
        }
        return all;
    }
};

std::string pool_json(const PoolRates& rates) {
    std::string out = "{\"pool\":" + std::to_string(rates.pool);
    for (const auto& [name, value, total] : pool_rates) {
        out += ',' + base::quoted(name) + ':' + base::number_text(rates.*value);
    }
    return out + '}';
}

std::string json_of(const std::vector<RecordRates>& all, double seconds) {
    return read::json_list(all, [&](const RecordRates& rates) {
        std::string out = '{' + base::quoted(rates.of.c_str()) + ':' + std::to_string(rates.id) +
                          ",\"seconds\":" + base::number_text(seconds);
        for (const auto& [name, value] : rates.values) {
            out += ',' + base::quoted(name.c_str()) + ':' + base::number_text(value);
        }
        return out + '}';
    });
}

}  // namespace

ProcessRates difference(const ProcessSnapshot& older, const ProcessSnapshot& newer) {
    const Interval interval = {growth(older.time_ns, newer.time_ns) / 1e9};
    ProcessRates rates;
    rates.seconds = interval.seconds;
    rates.minor_faults = interval.rate(older.minor_faults, newer.minor_faults);
    rates.pools = interval.of_pools(older.pools, newer.pools);
    const auto of = [&](auto ProcessSnapshot::*list) {
        return interval.of_records(snapshots::group_of(older.*list),
                                   snapshots::group_of(newer.*list));
    };
    rates.devices = of(&ProcessSnapshot::devices);
    rates.planned = of(&ProcessSnapshot::planned);
    return rates;
}

std::string to_json(const ProcessRates& rates) {
    return "{\"seconds\":" + base::number_text(rates.seconds) +
           ",\"minor_faults\":" + base::number_text(rates.minor_faults) +
           ",\"pools\":" + read::json_list(rates.pools, pool_json) +
           ",\"devices\":" + json_of(rates.devices, rates.seconds) +
           ",\"planned\":" + json_of(rates.planned, rates.seconds) + '}';
}

}  // namespace tensorpool
