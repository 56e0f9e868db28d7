#include <algorithm>
#include <string>

#include <tensorpool/process_snapshot.hpp>

#include "statistics/report/number_text.hpp"
#include "statistics/report/report_parts.hpp"
#include "statistics/report/sources.hpp"

namespace tensorpool {
namespace {

using statistics::Sources;
using statistics::sources_of;

template <class Rates>
struct RateField {
    const char* name;
    double Rates::*value;
};

constexpr RateField<DeviceRates> device_fields[] = {
    {"seconds", &DeviceRates::seconds},
    {"allocations", &DeviceRates::allocations},
    {"deallocations", &DeviceRates::deallocations},
    {"allocated_bytes", &DeviceRates::allocated_bytes},
    {"growths", &DeviceRates::growths},
    {"synchronizations", &DeviceRates::synchronizations},
    {"failures", &DeviceRates::failures},
    {"hit_ratio", &DeviceRates::hit_ratio},
};

constexpr RateField<PlannedRates> planned_fields[] = {
    {"seconds", &PlannedRates::seconds},     {"iterations", &PlannedRates::iterations},
    {"served", &PlannedRates::served},       {"from_pool", &PlannedRates::from_pool},
    {"hit_ratio", &PlannedRates::hit_ratio},
};

constexpr RateField<PoolRates> pool_fields[] = {
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

    DeviceRates rates(const DeviceStatistics& older, const DeviceStatistics& newer) const noexcept {
        DeviceRates rates;
        rates.device = newer.id;
        rates.seconds = seconds;
        rates.allocations = rate(older.allocations, newer.allocations);
        rates.deallocations = rate(older.deallocations, newer.deallocations);
        rates.allocated_bytes = rate(older.allocated_bytes, newer.allocated_bytes);
        rates.growths = rate(older.growths, newer.growths);
        rates.synchronizations = rate(older.synchronizations, newer.synchronizations);
        rates.failures = rate(older.failures, newer.failures);
        const double hits =
            rate(older.parked_hits, newer.parked_hits) + rate(older.free_hits, newer.free_hits);
        rates.hit_ratio = rates.allocations > 0 ? std::min(hits / rates.allocations, 1.0) : 1.0;
        return rates;
    }

    PlannedRates rates(const PlannedArenaStatistics& older,
                       const PlannedArenaStatistics& newer) const noexcept {
        PlannedRates rates;
        rates.planned = newer.id;
        rates.seconds = seconds;
        rates.iterations = rate(older.iterations, newer.iterations);
        rates.served = rate(older.served, newer.served);
        rates.from_pool = rate(older.from_pool, newer.from_pool);
        const double requests = rates.served + rates.from_pool;
        rates.hit_ratio = requests > 0 ? rates.served / requests : 1.0;
        return rates;
    }

    /// Of those that are in both.
    template <class Rates, class Statistics>
    std::vector<Rates> rates_of_all(const std::vector<Statistics>& older,
                                    const std::vector<Statistics>& newer) const {
        std::vector<Rates> all;
        for (const Statistics& now : newer) {
            const auto before =
                std::find_if(older.begin(), older.end(),
                             [&](const Statistics& one) { return one.id == now.id; });
            if (before != older.end()) all.push_back(rates(*before, now));
        }
        return all;
    }
};

/// `[{"<of>":number,...},...]`.
template <class Rates, std::size_t count>
std::string json_of(const std::vector<Rates>& all, const char* of, std::uint64_t Rates::*number,
                    const RateField<Rates> (&fields)[count]) {
    std::string out = "[";
    for (const Rates& rates : all) {
        if (out.size() > 1) out += ',';
        out += '{' + statistics::quoted(of) + ':' + std::to_string(rates.*number);
        for (const RateField<Rates>& field : fields) {
            out += ',' + statistics::quoted(field.name) + ':' +
                   statistics::number_text(rates.*field.value);
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
    rates.pools = interval.rates_of_all<PoolRates>(older.pools, newer.pools);
    rates.devices = interval.rates_of_all<DeviceRates>(older.devices, newer.devices);
    rates.planned = interval.rates_of_all<PlannedRates>(older.planned, newer.planned);
    return rates;
}

std::string to_json(const ProcessRates& rates) {
    return "{\"seconds\":" + statistics::number_text(rates.seconds) +
           ",\"minor_faults\":" + statistics::number_text(rates.minor_faults) +
           ",\"pools\":" + json_of(rates.pools, "pool", &PoolRates::pool, pool_fields) +
           ",\"devices\":" + json_of(rates.devices, "device", &DeviceRates::device, device_fields) +
           ",\"planned\":" +
           json_of(rates.planned, "planned", &PlannedRates::planned, planned_fields) + '}';
}

}  // namespace tensorpool
