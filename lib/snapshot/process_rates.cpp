#include <algorithm>
#include <string>

#include <tensorpool/process_snapshot.hpp>

#include "base/report_text.hpp"
#include "statistics/sums/steady_sources.hpp"

namespace tensorpool {
namespace {

using statistics::Sources;
using statistics::sources_of;

/// A rate, and the total whose growth it is. `total` is null if the rate is computed otherwise.
template <class Rates, class Statistics>
struct Rate {
    const char* name;
    double Rates::*value;
    std::uint64_t Statistics::*total = nullptr;
};

constexpr Rate<DeviceRates, DeviceStatistics> device_rates[] = {
    {"seconds", &DeviceRates::seconds},
    {"allocations", &DeviceRates::allocations, &DeviceStatistics::allocations},
    {"deallocations", &DeviceRates::deallocations, &DeviceStatistics::deallocations},
    {"allocated_bytes", &DeviceRates::allocated_bytes, &DeviceStatistics::allocated_bytes},
    {"growths", &DeviceRates::growths, &DeviceStatistics::growths},
    {"synchronizations", &DeviceRates::synchronizations, &DeviceStatistics::synchronizations},
    {"failures", &DeviceRates::failures, &DeviceStatistics::failures},
    {"hit_ratio", &DeviceRates::hit_ratio},
};

constexpr Rate<PlannedRates, PlannedArenaStatistics> planned_rates[] = {
    {"seconds", &PlannedRates::seconds},
    {"iterations", &PlannedRates::iterations, &PlannedArenaStatistics::iterations},
    {"served", &PlannedRates::served, &PlannedArenaStatistics::served},
    {"from_pool", &PlannedRates::from_pool, &PlannedArenaStatistics::from_pool},
    {"hit_ratio", &PlannedRates::hit_ratio},
};

constexpr Rate<PoolRates, PoolStatistics> pool_rates[] = {
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

    void add_sources(PoolRates& rates, const Sources& older, const Sources& newer) const noexcept {
        double* const to[] = {&rates.from_magazines, &rates.from_depots, &rates.from_spans,
                              &rates.from_extents, &rates.from_system};
        for (std::size_t i = 0; i != newer.size(); ++i) *to[i] = rate(older[i], newer[i]);
    }

    void compute(PoolRates& rates, const PoolStatistics& older,
                 const PoolStatistics& newer) const noexcept {
        add_sources(rates, sources_of(older), sources_of(newer));
        rates.hit_ratio = hit_ratio(rate(older.cache_hits, newer.cache_hits), rates.allocations);
        if (rates.allocated_bytes > rates.requested_bytes) {
            rates.rounding_ratio = 1 - rates.requested_bytes / rates.allocated_bytes;
        }
    }
    void compute(DeviceRates& rates, const DeviceStatistics& older,
                 const DeviceStatistics& newer) const noexcept {
        rates.hit_ratio = hit_ratio(
            rate(older.parked_hits, newer.parked_hits) + rate(older.free_hits, newer.free_hits),
            rates.allocations);
    }
    void compute(PlannedRates& rates, const PlannedArenaStatistics& /*older*/,
                 const PlannedArenaStatistics& /*newer*/) const noexcept {
        rates.hit_ratio = hit_ratio(rates.served, rates.served + rates.from_pool);
    }

    /// Returns the rates of the objects that are in both snapshots; `number` is the field for their
    /// number.
    template <class Rates, class Statistics, std::size_t count>
    std::vector<Rates> rates_of_all(const std::vector<Statistics>& older,
                                    const std::vector<Statistics>& newer,
                                    std::uint64_t Rates::*number,
                                    const Rate<Rates, Statistics> (&table)[count]) const {
        std::vector<Rates> all;
        for (const Statistics& now : newer) {
            const auto before = std::ranges::find(older, now.id, &Statistics::id);
            if (before == older.end()) continue;
            Rates& rates = all.emplace_back();
            rates.*number = now.id;
            rates.seconds = seconds;
            for (const auto& [name, value, total] : table) {
                if (total != nullptr) rates.*value = rate(*before.*total, now.*total);
            }
            compute(rates, *before, now);
        }
        return all;
    }
};

/// Formats the rates as `[{"<of>":number,...},...]`.
template <class Rates, class Statistics, std::size_t count>
std::string json_of(const std::vector<Rates>& all, const char* of, std::uint64_t Rates::*number,
                    const Rate<Rates, Statistics> (&table)[count]) {
    std::string out = "[";
    for (const Rates& rates : all) {
        if (out.size() > 1) out += ',';
        out += '{' + base::quoted(of) + ':' + std::to_string(rates.*number);
        for (const auto& [name, value, total] : table) {
            out += ',' + base::quoted(name) + ':' + base::number_text(rates.*value);
        }
        out += '}';
    }
    return out + ']';
}

}  // namespace

ProcessRates difference(const ProcessSnapshot& older, const ProcessSnapshot& newer) {
    const Interval interval = {growth(older.time_ns, newer.time_ns) / 1e9};
    ProcessRates rates;
    rates.seconds = interval.seconds;
    rates.minor_faults = interval.rate(older.minor_faults, newer.minor_faults);
    rates.pools = interval.rates_of_all(older.pools, newer.pools, &PoolRates::pool, pool_rates);
    rates.devices =
        interval.rates_of_all(older.devices, newer.devices, &DeviceRates::device, device_rates);
    rates.planned =
        interval.rates_of_all(older.planned, newer.planned, &PlannedRates::planned, planned_rates);
    return rates;
}

std::string to_json(const ProcessRates& rates) {
    return "{\"seconds\":" + base::number_text(rates.seconds) +
           ",\"minor_faults\":" + base::number_text(rates.minor_faults) +
           ",\"pools\":" + json_of(rates.pools, "pool", &PoolRates::pool, pool_rates) +
           ",\"devices\":" + json_of(rates.devices, "device", &DeviceRates::device, device_rates) +
           ",\"planned\":" +
           json_of(rates.planned, "planned", &PlannedRates::planned, planned_rates) + '}';
}

}  // namespace tensorpool
