#pragma once

#include <functional>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command {

/// The figures of processes as prometheus-cpp collects them. Threads: as the function it is given.
class SnapshotCollectable : public prometheus::Collectable {
public:
    /// Of the processes that hold a pool now: who has ended is not among them.
    using TakeSnapshots = std::function<std::vector<ProcessSnapshot>()>;

    explicit SnapshotCollectable(TakeSnapshots take_snapshots);
    std::vector<prometheus::MetricFamily> Collect() const override;

private:
    TakeSnapshots take_snapshots_;
};

}  // namespace tensorpool::command
