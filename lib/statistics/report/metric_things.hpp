#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tensorpool/metrics.hpp>

namespace tensorpool::statistics {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// One object that has metrics, with the labels that identify it.
template <class Statistics>
struct MetricThing {
    Labels labels;
    const Statistics* statistics;
};

/// All objects of the snapshots, each with labels of its own.
struct MetricThings {
    explicit MetricThings(const std::vector<ProcessSnapshot>& snapshots);

    std::vector<MetricThing<ProcessSnapshot>> processes;
    std::vector<MetricThing<PoolStatistics>> pools;
    std::vector<MetricThing<ArenaStatistics>> arenas;  // including scratches
    std::vector<MetricThing<DeviceStatistics>> devices;
    std::vector<MetricThing<PlannedArenaStatistics>> planned;
    std::vector<MetricThing<BudgetStatistics>> budgets;
    std::vector<MetricThing<StashStatistics>> stashes;
    std::vector<MetricThing<ScopeStatistics>> scopes;
};

}  // namespace tensorpool::statistics
