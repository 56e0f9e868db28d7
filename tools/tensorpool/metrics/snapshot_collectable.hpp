#pragma once

#include <functional>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command {

/// The metrics of processes as a collectable of prometheus-cpp. It is as thread-safe as the
/// function that it calls.
class SnapshotCollectable : public prometheus::Collectable {
public:
    /// `take_snapshots` returns the snapshots of the processes that have a pool now; ended
    /// processes are not included.
    using TakeSnapshots = std::function<std::vector<ProcessSnapshot>()>;

    explicit SnapshotCollectable(TakeSnapshots take_snapshots);
    std::vector<prometheus::MetricFamily> Collect() const override;

private:
    TakeSnapshots take_snapshots_;
};

}  // namespace tensorpool::command
