#pragma once

/// @file
/// The figures of processes as metrics: names with labels, for Prometheus and what is like it.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/export.hpp>
#include <tensorpool/process_snapshot.hpp>

namespace tensorpool {

/// One value of a metric.
struct MetricSample {
    std::vector<std::pair<std::string, std::string>> labels;  ///< name and value, not escaped
    double value = 0;
};

/// One metric: what it is, and a value for each combination of labels.
struct MetricFamily {
    enum class Kind : std::uint8_t { gauge, counter };

    std::string name;  ///< as tensorpool_block_bytes; that of a counter ends in _total
    std::string help;
    Kind kind = Kind::gauge;
    std::vector<MetricSample> samples;
};

/// Everything that the snapshots hold; families without a sample are left out. The labels are
/// `pid` and `process` everywhere, then `pool`, `arena` or `scope`, then what divides the metric
/// (`tier`, `source`, `reason`, `kind`). Where several things of one process have the same name,
/// the second gets its number behind it, as in "images #7": no two samples of a family have the
/// same labels.
TENSORPOOL_API std::vector<MetricFamily> metric_families(
    const std::vector<ProcessSnapshot>& snapshots);

}  // namespace tensorpool
