#include <tensorpool/metrics.hpp>

#include <algorithm>
#include <limits>

#include <tensorpool/timeline.hpp>

#include "statistics/report/figures.hpp"
#include "statistics/report/metric_things.hpp"
#include "statistics/report/report_parts.hpp"
#include "statistics/report/sources.hpp"

namespace tensorpool {
namespace {

using namespace statistics;
using Kind = MetricFamily::Kind;
using Families = std::vector<MetricFamily>;

/// A name of a metric for one figure; help and kind are the figure's own.
template <class Statistics>
struct Metric {
    const char* name;
    std::uint64_t Statistics::*value;
};

constexpr Metric<Pool> pool_metrics[] = {
    {"tensorpool_block_bytes", &Pool::in_use_bytes},
    {"tensorpool_requested_bytes_total", &Pool::requested_bytes},
    {"tensorpool_allocated_bytes_total", &Pool::allocated_bytes},
    {"tensorpool_capacity_bytes", &Pool::capacity_bytes},
    {"tensorpool_reserved_bytes", &Pool::reserved_bytes},
    {"tensorpool_record_bytes", &Pool::record_bytes},
    {"tensorpool_peak_block_bytes", &Pool::peak_in_use_bytes},
    {"tensorpool_peak_capacity_bytes", &Pool::peak_capacity_bytes},
    {"tensorpool_deallocations_total", &Pool::deallocations},
    {"tensorpool_system_maps_total", &Pool::growths},
    {"tensorpool_released_bytes_total", &Pool::given_back_bytes},
    {"tensorpool_threads", &Pool::threads},
};

constexpr Metric<Arena> arena_metrics[] = {
    {"tensorpool_arena_used_bytes", &Arena::used_bytes},
    {"tensorpool_arena_peak_used_bytes", &Arena::peak_used_bytes},
    {"tensorpool_arena_capacity_bytes", &Arena::capacity_bytes},
    {"tensorpool_arena_peak_capacity_bytes", &Arena::peak_capacity_bytes},
    {"tensorpool_arena_reserved_bytes", &Arena::reserved_bytes},
    {"tensorpool_arena_system_maps_total", &Arena::growths},
    {"tensorpool_arena_released_bytes_total", &Arena::given_back_bytes},
    {"tensorpool_arena_allocation_failures_total", &Arena::refusals},
};

constexpr Metric<DeviceFigures> device_metrics[] = {
    {"tensorpool_device_block_bytes", &DeviceFigures::in_use_bytes},
    {"tensorpool_device_peak_block_bytes", &DeviceFigures::peak_in_use_bytes},
    {"tensorpool_device_requested_block_bytes", &DeviceFigures::requested_in_use_bytes},
    {"tensorpool_device_deferred_bytes", &DeviceFigures::deferred_bytes},
    {"tensorpool_device_peak_active_bytes", &DeviceFigures::peak_active_bytes},
    {"tensorpool_device_capacity_bytes", &DeviceFigures::capacity_bytes},
    {"tensorpool_device_peak_capacity_bytes", &DeviceFigures::peak_capacity_bytes},
    {"tensorpool_device_address_bytes", &DeviceFigures::address_bytes},
    {"tensorpool_device_free_bytes", &DeviceFigures::free_bytes},
    {"tensorpool_device_split_bytes", &DeviceFigures::split_bytes},
    {"tensorpool_device_parked_bytes", &DeviceFigures::parked_bytes},
    {"tensorpool_device_captured_bytes", &DeviceFigures::captured_bytes},
    {"tensorpool_device_slabs", &DeviceFigures::slabs},
    {"tensorpool_device_free_blocks", &DeviceFigures::free_blocks},
    {"tensorpool_device_deferred_blocks", &DeviceFigures::deferred_blocks},
    {"tensorpool_device_streams", &DeviceFigures::streams},
    {"tensorpool_device_deallocations_total", &DeviceFigures::deallocations},
    {"tensorpool_device_requested_bytes_total", &DeviceFigures::requested_bytes},
    {"tensorpool_device_allocated_bytes_total", &DeviceFigures::allocated_bytes},
    {"tensorpool_device_deallocated_bytes_total", &DeviceFigures::deallocated_bytes},
    {"tensorpool_device_growths_total", &DeviceFigures::growths},
    {"tensorpool_device_grown_bytes_total", &DeviceFigures::grown_bytes},
    {"tensorpool_device_give_backs_total", &DeviceFigures::give_backs},
    {"tensorpool_device_released_bytes_total", &DeviceFigures::given_back_bytes},
    {"tensorpool_device_cross_stream_uses_total", &DeviceFigures::cross_stream_uses},
    {"tensorpool_device_events_total", &DeviceFigures::events},
    {"tensorpool_device_synchronizations_total", &DeviceFigures::synchronizations},
    {"tensorpool_device_pressures_total", &DeviceFigures::pressures},
    {"tensorpool_device_allocation_failures_total", &DeviceFigures::failures},
};

constexpr Metric<Planned> planned_metrics[] = {
    {"tensorpool_planned_lower_bound_bytes", &Planned::lower_bound_bytes},
    {"tensorpool_planned_pool_peak_bytes", &Planned::pool_peak_bytes},
    {"tensorpool_planned_plan_peak_bytes", &Planned::plan_peak_bytes},
    {"tensorpool_planned_capacity_bytes", &Planned::capacity_bytes},
    {"tensorpool_planned_block_bytes", &Planned::in_use_bytes},
    {"tensorpool_planned_pool_block_bytes", &Planned::pool_in_use_bytes},
    {"tensorpool_planned_buffers", &Planned::buffers},
    {"tensorpool_planned_iterations_total", &Planned::iterations},
    {"tensorpool_planned_plans_total", &Planned::plans},
};

constexpr Metric<Scope> scope_metrics[] = {
    {"tensorpool_scope_calls_total", &Scope::calls},
    {"tensorpool_scope_open", &Scope::open},
    {"tensorpool_scope_allocations_total", &Scope::allocations},
    {"tensorpool_scope_deallocations_total", &Scope::deallocations},
    {"tensorpool_scope_requested_bytes_total", &Scope::requested_bytes},
    {"tensorpool_scope_allocated_bytes_total", &Scope::allocated_bytes},
    {"tensorpool_scope_deallocated_bytes_total", &Scope::deallocated_bytes},
    {"tensorpool_scope_peak_bytes", &Scope::peak_bytes},
    {"tensorpool_scope_out_of_order_total", &Scope::out_of_order},
};

constexpr Metric<Process> process_metrics[] = {
    {"tensorpool_process_minor_faults_total", &Process::minor_faults},
    {"tensorpool_process_resident_bytes", &Process::resident_bytes},
    {"tensorpool_process_committed_bytes", &Process::committed_bytes},
};

/// What it says, and PyTorch's word for it where there is one.
template <class Statistics>
std::string help_of(const Figure<Statistics>& figure) {
    const std::string sentence = figure.sentence;
    return *figure.pytorch == '\0' ? sentence : sentence + " PyTorch: " + figure.pytorch + '.';
}

template <class Statistics, std::size_t metric_count, std::size_t figure_count>
void add_figures(Families& families, const std::vector<MetricThing<Statistics>>& things,
                 const Metric<Statistics> (&metrics)[metric_count],
                 const Figure<Statistics> (&figures)[figure_count]) {
    for (const Metric<Statistics>& metric : metrics) {
        const auto* const figure =
            std::find_if(std::begin(figures), std::end(figures),
                         [&](const Figure<Statistics>& one) { return one.value == metric.value; });
        const bool counts = figure->kind == FigureKind::total;
        MetricFamily family = {
            metric.name, help_of(*figure), counts ? Kind::counter : Kind::gauge, {}};
        for (const MetricThing<Statistics>& thing : things) {
            const std::uint64_t value = thing.figures->*metric.value;
            family.samples.push_back({thing.labels, static_cast<double>(value)});
        }
        families.push_back(std::move(family));
    }
}

/// One value of the label that divides a metric, and the figure that it stands for.
struct Part {
    const char* label;
    std::uint64_t value;
};

/// A metric that a further label divides; `parts_of` gives the parts of one thing.
template <class Statistics, class PartsOf>
void add_divided(Families& families, const std::vector<MetricThing<Statistics>>& things,
                 MetricFamily family, const char* label, PartsOf parts_of) {
    for (const MetricThing<Statistics>& thing : things) {
        for (const auto& [part, value] : parts_of(*thing.figures)) {
            Labels labels = thing.labels;
            labels.emplace_back(label, part);
            family.samples.push_back({std::move(labels), static_cast<double>(value)});
        }
    }
    families.push_back(std::move(family));
}

/// A metric that is computed.
template <class Statistics, class ValueOf>
void add_computed(Families& families, const std::vector<MetricThing<Statistics>>& things,
                  MetricFamily family, ValueOf value_of) {
    for (const MetricThing<Statistics>& thing : things) {
        family.samples.push_back({thing.labels, value_of(*thing.figures)});
    }
    families.push_back(std::move(family));
}

std::vector<Part> tiers_of(const Pool& pool) {
    return {{"magazine", pool.parked_bytes},
            {"depot", pool.depot_bytes},
            {"span", pool.span_bytes},
            {"extent", pool.cached_bytes + pool.free_bytes}};
}

std::vector<Part> parts_by_source(const Pool& pool) {
    const Sources sources = sources_of(pool);
    return {{"magazine", sources.magazines},
            {"depot", sources.depots},
            {"span", sources.spans},
            {"extent", sources.extents},
            {"system", sources.system}};
}

// A request under way may count as a hit before it counts as an allocation.
std::vector<Part> parts_by_source(const DeviceFigures& device) {
    const std::uint64_t hits = device.parked_hits + device.free_hits;
    return {{"parked", device.parked_hits},
            {"free", device.free_hits},
            {"slab", device.allocations > hits ? device.allocations - hits : 0}};
}

std::vector<Part> parts_by_source(const Planned& planned) {
    return {{"plan", planned.served}, {"pool", planned.from_pool}};
}

std::vector<Part> parts_by_state(const Planned& planned) {
    using State = PlannedArenaStatistics::State;
    std::vector<Part> parts;
    for (const State state : {State::learning, State::planning, State::serving}) {
        parts.push_back({to_string(state), planned.state == state ? 1U : 0U});
    }
    return parts;
}

std::vector<Part> parts_by_reason(const Planned& planned) {
    return {{"too_large", planned.too_large},
            {"out_of_order", planned.out_of_order},
            {"unknown", planned.unknown},
            {"still_in_use", planned.still_in_use}};
}

std::vector<Part> parts_by_reason(const Pool& pool) {
    static constexpr const char* reasons[limit_kind_count] = {
        "other", "max_allocation", "max_capacity", "memory", "address_space", "records"};
    std::vector<Part> parts;
    for (unsigned limit = 0; limit < limit_kind_count; ++limit) {
        parts.push_back({reasons[limit], pool.failures_by_limit[limit]});
    }
    return parts;
}

std::vector<Part> parts_by_check(const Process& process) {
    return {{"misuse", process.failed_misuse},
            {"leak", process.failed_leaks},
            {"thread", process.failed_threads},
            {"scope_order", process.failed_scope_orders}};
}

double limit_in(std::uint64_t bytes) {
    return bytes == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(bytes);
}

template <class Statistics>
double limit_of(const Statistics& one) {
    return limit_in(one.limit_bytes);
}

double soft_limit_of(const DeviceFigures& device) {
    return limit_in(device.soft_limit_bytes);
}

double blocks_of(const Pool& pool) {
    return pool.allocations > pool.deallocations
               ? static_cast<double>(pool.allocations - pool.deallocations)
               : 0.0;
}

void add_divided_of_pools(Families& families, const MetricThings& things) {
    add_divided(families, things.pools,
                {"tensorpool_cached_bytes",
                 "Free memory that the pool keeps, by where it is: in the magazines of threads, in "
                 "the depot, in spans of buckets, in free runs of pages.",
                 Kind::gauge,
                 {}},
                "tier", tiers_of);
    add_divided(families, things.pools,
                {"tensorpool_allocations_total",
                 "Blocks handed out, by where they came from: the thread's magazines, the depot, "
                 "spans of buckets, free runs of pages, memory new from the system.",
                 Kind::counter,
                 {}},
                "source", [](const Pool& pool) { return parts_by_source(pool); });
    add_divided(families, things.pools,
                {"tensorpool_allocation_failures_total",
                 "Requests that could not be met, by the limit that was met.",
                 Kind::counter,
                 {}},
                "reason", [](const Pool& pool) { return parts_by_reason(pool); });
}

void add_devices(Families& families, const MetricThings& things) {
    add_figures(families, things.devices, device_metrics, device_figures);
    add_divided(families, things.devices,
                {"tensorpool_device_allocations_total",
                 "Blocks handed out, by where they came from: freed lately on their stream, a free "
                 "run, a slab new from the device.",
                 Kind::counter,
                 {}},
                "source", [](const DeviceFigures& device) { return parts_by_source(device); });
    add_computed(
        families, things.devices,
        {"tensorpool_device_limit_bytes", "How far the capacity may grow.", Kind::gauge, {}},
        limit_of<DeviceFigures>);
    add_computed(families, things.devices,
                 {"tensorpool_device_soft_limit_bytes",
                  "The capacity from which free blocks are given back.",
                  Kind::gauge,
                  {}},
                 soft_limit_of);
}

void add_planned(Families& families, const MetricThings& things) {
    add_figures(families, things.planned, planned_metrics, planned_figures);
    add_divided(
        families, things.planned,
        {"tensorpool_planned_allocations_total",
         "Requests of planned arenas, by where they were served from: the plan or the pool.",
         Kind::counter,
         {}},
        "source", [](const Planned& planned) { return parts_by_source(planned); });
    add_divided(families, things.planned,
                {"tensorpool_planned_misses_total",
                 "Requests that left the plan and went to the pool, by the reason.",
                 Kind::counter,
                 {}},
                "reason", [](const Planned& planned) { return parts_by_reason(planned); });
    add_computed(
        families, things.planned,
        {"tensorpool_planned_planning_seconds_total", "Spent on making plans.", Kind::counter, {}},
        [](const Planned& planned) { return static_cast<double>(planned.planning_ns) / 1e9; });
    add_divided(families, things.planned,
                {"tensorpool_planned_state",
                 "1 for the state that the arena is in, 0 for others.",
                 Kind::gauge,
                 {}},
                "state", parts_by_state);
}

void add_process(Families& families, const MetricThings& things) {
    add_divided(families, things.processes,
                {"tensorpool_checks_failed_total", "Checks that fired.", Kind::counter, {}}, "kind",
                parts_by_check);
    add_figures(families, things.processes, process_metrics, process_figures);
    MetricFamily build = {
        "tensorpool_build_info", "Which tensorpool the process holds; always 1.", Kind::gauge, {}};
    for (const auto& [labels, process] : things.processes) {
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
    add_figures(families, things.pools, pool_metrics, pool_figures);
    add_divided_of_pools(families, things);
    add_computed(families, things.pools,
                 {"tensorpool_limit_bytes", "How far the capacity may grow.", Kind::gauge, {}},
                 limit_of<Pool>);
    add_computed(families, things.pools,
                 {"tensorpool_blocks", "Blocks that callers hold.", Kind::gauge, {}}, blocks_of);
    add_figures(families, things.arenas, arena_metrics, arena_figures);
    add_computed(
        families, things.arenas,
        {"tensorpool_arena_limit_bytes", "How far the capacity may grow.", Kind::gauge, {}},
        limit_of<Arena>);
    add_devices(families, things);
    add_planned(families, things);
    add_figures(families, things.scopes, scope_metrics, scope_figures);
    add_process(families, things);
    std::erase_if(families, [](const MetricFamily& family) { return family.samples.empty(); });
    return families;
}

}  // namespace tensorpool
