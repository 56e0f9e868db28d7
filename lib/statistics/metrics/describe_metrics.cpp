#include <vector>

#include <tensorpool/metrics.hpp>

#include "statistics/metrics/budget_metrics.hpp"
#include "statistics/metrics/process_metrics.hpp"
#include "statistics/metrics/scope_metrics.hpp"
#include "statistics/metrics/stash_metrics.hpp"

namespace tensorpool {
namespace {

using statistics::MetricKind;
using statistics::Metrics;

constexpr const char* word_of(MetricKind kind) noexcept {
    if (kind == MetricKind::gauge) return "gauge";
    return kind == MetricKind::total ? "total" : "peak";
}

template <class... Statistics>
std::vector<MetricDescription> describe() {
    std::vector<MetricDescription> all;
    const auto append = [&](const char* of, const auto& metrics) {
        for (const auto& metric : metrics) {
            all.push_back({of, metric.name, metric.unit, word_of(metric.kind), metric.sentence,
                           metric.prometheus, metric.pytorch});
        }
    };
    (append(Metrics<Statistics>::of, Metrics<Statistics>::all), ...);
    return all;
}

}  // namespace

std::span<const MetricDescription> describe_metrics() {
    static const auto all =
        describe<ProcessSnapshot, PoolStatistics, BucketStatistics, LargeStatistics,
                 ArenaStatistics, DeviceStatistics, PlannedArenaStatistics, BudgetStatistics,
                 StashStatistics, ScopeStatistics, ThreadStatistics>();
    return all;
}

}  // namespace tensorpool
