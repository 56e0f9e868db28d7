#include <tensorpool/metrics.hpp>

#include <algorithm>
#include <limits>

#include <tensorpool/timeline.hpp>

#include "statistics/figures.hpp"
#include "statistics/metric_things.hpp"
#include "statistics/report_parts.hpp"
#include "statistics/sources.hpp"

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
            metric.name, figure->sentence, counts ? Kind::counter : Kind::gauge, {}};
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

template <class Statistics>
double limit_of(const Statistics& one) {
    return one.limit_bytes == 0 ? std::numeric_limits<double>::infinity()
                                : static_cast<double>(one.limit_bytes);
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
                "source", parts_by_source);
    add_divided(families, things.pools,
                {"tensorpool_allocation_failures_total",
                 "Requests that could not be met, by the limit that was met.",
                 Kind::counter,
                 {}},
                "reason", parts_by_reason);
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
    add_figures(families, things.scopes, scope_metrics, scope_figures);
    add_process(families, things);
    std::erase_if(families, [](const MetricFamily& family) { return family.samples.empty(); });
    return families;
}

}  // namespace tensorpool
