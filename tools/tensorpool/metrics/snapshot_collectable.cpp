#include "metrics/snapshot_collectable.hpp"

#include <utility>

#include <tensorpool/metrics.hpp>

#include "metrics/exposition.hpp"

namespace tensorpool::command {

SnapshotCollectable::SnapshotCollectable(TakeSnapshots take_snapshots)
    : take_snapshots_(std::move(take_snapshots)) {}

std::vector<prometheus::MetricFamily> SnapshotCollectable::Collect() const {
    return to_exposition(metric_families(take_snapshots_()));
}

}  // namespace tensorpool::command
