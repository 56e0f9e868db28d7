#include <tensorpool/metrics.hpp>

#include <limits>
#include <span>

#include <tensorpool/timeline.hpp>

#include "statistics/metrics/budget_metrics.hpp"
#include "statistics/metrics/process_metrics.hpp"
#include "statistics/metrics/scope_metrics.hpp"
#include "statistics/metrics/stash_metrics.hpp"
#include "statistics/report/metric_things.hpp"
#include "statistics/report/report_parts.hpp"
#include "statistics/report/sources.hpp"

namespace tensorpool {
namespace {

using namespace statistics;
using Kind = MetricFamily::Kind;
using Families = std::vector<MetricFamily>;

/// One value of the label that divides a metric.
struct Part {
    const char* label;
    double value;
};

Part part(const char* label, std::uint64_t value) {
    return {label, static_cast<double>(value)};
}

/// A metric that is divided by a label, or computed from several fields.
template <class Statistics>
struct DerivedMetric {
    const char* prometheus;
    MetricKind kind;
    const char* sentence;
    const char* label;  // "" if there is only one part, which has no label
    std::vector<Part> (*parts)(const Statistics& statistics);
};

double limit_in(std::uint64_t bytes) {
    return bytes == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(bytes);
}

template <class Statistics>
std::vector<Part> limit_of(const Statistics& one) {
    return {{"", limit_in(one.limit_bytes)}};
}

/// The derived metrics of `Statistics`.
template <class Statistics>
struct DerivedMetrics;

template <>
struct DerivedMetrics<PoolStatistics> {
    using enum MetricKind;
    using Of = PoolStatistics;

    static std::vector<Part> by_tier(const Of& pool) {
        return {part("magazine", pool.parked_bytes), part("depot", pool.depot_bytes),
                part("span", pool.span_bytes), part("extent", pool.cached_bytes + pool.free_bytes)};
    }
    static std::vector<Part> by_source(const Of& pool) {
        const Sources sources = sources_of(pool);
        return {part("magazine", sources.magazines), part("depot", sources.depots),
                part("span", sources.spans), part("extent", sources.extents),
                part("system", sources.system)};
    }
    static std::vector<Part> by_reason(const Of& pool) {
        static constexpr const char* reasons[limit_kind_count] = {
            "other", "max_allocation", "max_capacity", "memory", "address_space", "records"};
        std::vector<Part> parts;
        for (unsigned limit = 0; limit < limit_kind_count; ++limit) {
            parts.push_back(part(reasons[limit], pool.failures_by_limit[limit]));
        }
        return parts;
    }
    static std::vector<Part> blocks(const Of& pool) {
        const bool any = pool.allocations > pool.deallocations;
        return {part("", any ? pool.allocations - pool.deallocations : 0)};
    }

    static constexpr DerivedMetric<Of> all[] = {
        {"tensorpool_cached_bytes", gauge,
         "Free memory that the pool keeps, by where it is: in the magazines of threads, in the "
         "depot, in spans of buckets, in free runs of pages.",
         "tier", by_tier},
        {"tensorpool_allocations_total", total,
         "Blocks allocated, by where they came from: the thread's magazines, the depot, spans of "
         "buckets, free runs of pages, new memory from the system.",
         "source", by_source},
        {"tensorpool_allocation_failures_total", total,
         "Requests that could not be met, by the limit that caused it.", "reason", by_reason},
        {"tensorpool_limit_bytes", gauge, "Maximum of the capacity.", "", limit_of<Of>},
        {"tensorpool_blocks", gauge, "Blocks that callers hold.", "", blocks},
    };
};

template <>
struct DerivedMetrics<ArenaStatistics> {
    static constexpr DerivedMetric<ArenaStatistics> all[] = {
        {"tensorpool_arena_limit_bytes", MetricKind::gauge, "Maximum of the capacity.", "",
         limit_of<ArenaStatistics>},
    };
};

template <>
struct DerivedMetrics<DeviceStatistics> {
    using enum MetricKind;
    using Of = DeviceStatistics;

    // A request in progress may count as a hit before it counts as an allocation.
    static std::vector<Part> by_source(const Of& device) {
        const std::uint64_t hits = device.parked_hits + device.free_hits;
        return {part("parked", device.parked_hits), part("free", device.free_hits),
                part("slab", device.allocations > hits ? device.allocations - hits : 0)};
    }
    static std::vector<Part> soft_limit(const Of& device) {
        return {{"", limit_in(device.soft_limit_bytes)}};
    }

    static constexpr DerivedMetric<Of> all[] = {
        {"tensorpool_device_allocations_total", total,
         "Blocks allocated, by where they came from: recently freed on their stream, a free run, a "
         "new slab from the device.",
         "source", by_source},
        {"tensorpool_device_limit_bytes", gauge, "Maximum of the capacity.", "", limit_of<Of>},
        {"tensorpool_device_soft_limit_bytes", gauge,
         "Capacity above which free blocks are returned.", "", soft_limit},
    };
};

template <>
struct DerivedMetrics<PlannedArenaStatistics> {
    using enum MetricKind;
    using Of = PlannedArenaStatistics;

    static std::vector<Part> by_source(const Of& arena) {
        return {part("plan", arena.served), part("pool", arena.from_pool)};
    }
    static std::vector<Part> by_reason(const Of& arena) {
        return {part("too_large", arena.too_large), part("out_of_order", arena.out_of_order),
                part("unknown", arena.unknown), part("still_in_use", arena.still_in_use)};
    }
    static std::vector<Part> planning_seconds(const Of& arena) {
        return {{"", static_cast<double>(arena.planning_ns) / 1e9}};
    }
    static std::vector<Part> by_state(const Of& arena) {
        std::vector<Part> parts;
        for (const auto state : {Of::State::learning, Of::State::planning, Of::State::serving}) {
            parts.push_back(part(to_string(state), arena.state == state ? 1 : 0));
        }
        return parts;
    }

    static constexpr DerivedMetric<Of> all[] = {
        {"tensorpool_planned_allocations_total", total,
         "Requests of planned arenas, by where they were served from: the plan or the pool.",
         "source", by_source},
        {"tensorpool_planned_misses_total", total,
         "Requests that left the plan and went to the pool, by the reason.", "reason", by_reason},
        {"tensorpool_planned_planning_seconds_total", total, "Time spent on making plans.", "",
         planning_seconds},
        {"tensorpool_planned_state", gauge, "1 for the state that the arena is in, 0 for others.",
         "state", by_state},
    };
};

template <>
struct DerivedMetrics<BudgetStatistics> {
    using enum MetricKind;
    using Of = BudgetStatistics;

    static std::vector<Part> soft_limit(const Of& budget) {
        return {{"", limit_in(budget.soft_bytes)}};
    }
    static std::vector<Part> hard_limit(const Of& budget) {
        return {{"", limit_in(budget.hard_bytes)}};
    }

    static constexpr DerivedMetric<Of> all[] = {
        {"tensorpool_budget_soft_limit_bytes", gauge,
         "Bytes charged before which holders are asked for memory.", "", soft_limit},
        {"tensorpool_budget_limit_bytes", gauge, "Maximum of the bytes charged.", "", hard_limit},
    };
};

template <>
struct DerivedMetrics<StashStatistics> {
    using enum MetricKind;
    using Of = StashStatistics;

    static std::vector<Part> by_place(const Of& stash) {
        return {part("memory", stash.compressed_bytes), part("file", stash.spilled_bytes)};
    }
    static std::vector<Part> stash_seconds(const Of& stash) {
        return {{"", static_cast<double>(stash.stash_ns) / 1e9}};
    }
    static std::vector<Part> restore_seconds(const Of& stash) {
        return {{"", static_cast<double>(stash.restore_ns) / 1e9}};
    }

    static constexpr DerivedMetric<Of> all[] = {
        {"tensorpool_stash_rest_bytes", gauge,
         "Bytes that what rests takes: compressed in memory, or in files.", "place", by_place},
        {"tensorpool_stash_seconds_total", total, "Time of putting to rest, spilling included.", "",
         stash_seconds},
        {"tensorpool_stash_restore_seconds_total", total,
         "Time of bringing back, page faults included.", "", restore_seconds},
    };
};

template <>
struct DerivedMetrics<ScopeStatistics> {
    static constexpr std::span<const DerivedMetric<ScopeStatistics>> all = {};
};

template <>
struct DerivedMetrics<ProcessSnapshot> {
    using enum MetricKind;

    static std::vector<Part> by_check(const ProcessSnapshot& process) {
        return {part("misuse", process.failed_misuse), part("leak", process.failed_leaks),
                part("thread", process.failed_threads),
                part("scope_order", process.failed_scope_orders)};
    }

    static constexpr DerivedMetric<ProcessSnapshot> all[] = {
        {"tensorpool_checks_failed_total", total, "Failed checks.", "kind", by_check},
    };
};

constexpr Kind kind_of(MetricKind kind) noexcept {
    return kind == MetricKind::total ? Kind::counter : Kind::gauge;
}

/// Returns the sentence of a metric, followed by PyTorch's name if there is one.
template <class Metric>
std::string help_of(const Metric& metric) {
    const std::string sentence = metric.sentence;
    return *metric.pytorch == '\0' ? sentence : sentence + " PyTorch: " + metric.pytorch + '.';
}

template <class Statistics>
void add_fields(Families& families, const std::vector<MetricThing<Statistics>>& things) {
    for (const auto& metric : Metrics<Statistics>::all) {
        if (*metric.prometheus == '\0') continue;
        MetricFamily family = {metric.prometheus, help_of(metric), kind_of(metric.kind), {}};
        for (const auto& [labels, statistics] : things) {
            const std::uint64_t value = statistics->*metric.field.number;
            family.samples.push_back({labels, static_cast<double>(value)});
        }
        families.push_back(std::move(family));
    }
}

template <class Statistics>
void add_derived(Families& families, const std::vector<MetricThing<Statistics>>& things) {
    for (const auto& metric : DerivedMetrics<Statistics>::all) {
        MetricFamily family = {metric.prometheus, metric.sentence, kind_of(metric.kind), {}};
        for (const auto& [labels, statistics] : things) {
            for (const auto& [label, value] : metric.parts(*statistics)) {
                family.samples.push_back({labels, value});
                if (*metric.label == '\0') continue;
                family.samples.back().labels.emplace_back(metric.label, label);
            }
        }
        families.push_back(std::move(family));
    }
}

template <class Statistics>
void add(Families& families, const std::vector<MetricThing<Statistics>>& things) {
    add_fields(families, things);
    add_derived(families, things);
}

void add_build(Families& families, const std::vector<MetricThing<ProcessSnapshot>>& processes) {
    MetricFamily build = {"tensorpool_build_info",
                          "Version of tensorpool that the process uses; always 1.",
                          Kind::gauge,
                          {}};
    for (const auto& [labels, process] : processes) {
        Labels with_version = labels;
        with_version.emplace_back("version", valid_utf8(process->library_version.c_str()));
        build.samples.push_back({std::move(with_version), 1});
    }
    families.push_back(std::move(build));
}

}  // namespace

std::vector<MetricFamily> metric_families(const std::vector<ProcessSnapshot>& snapshots) {
    const MetricThings things(snapshots);
    Families families;
    add(families, things.pools);
    add(families, things.arenas);
    add(families, things.devices);
    add(families, things.planned);
    add(families, things.budgets);
    add(families, things.stashes);
    add(families, things.scopes);
    add(families, things.processes);
    add_build(families, things.processes);
    std::erase_if(families, [](const MetricFamily& family) { return family.samples.empty(); });
    return families;
}

}  // namespace tensorpool
