#pragma once

/// @file
/// What each metric means, and the metrics of processes as Prometheus and its like take them: names
/// with labels.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/export.hpp>
#include <tensorpool/process_snapshot.hpp>

namespace tensorpool {

/// One metric. All strings live as long as the program.
struct MetricDescription {
    const char* of;        ///< "process", "pool", "bucket", "large", "arena", "device", "planned",
                           ///< "scope" or "thread"
    const char* name;      ///< of the field, in JSON and in the structure
    const char* unit;      ///< "bytes", or what is counted, such as "calls"
    const char* kind;      ///< "gauge", "total" (only grows) or "peak" (the highest so far)
    const char* sentence;  ///< what it says, ending with a full stop
    /// What Prometheus calls it; "" if it is not exported under a name of its own.
    const char* prometheus;
    /// What PyTorch calls it, in `torch.cuda.memory_stats()` or in a block's state; "" if PyTorch
    /// has no word for it. Only device allocators have these words.
    const char* pytorch;
};

/// Returns the descriptions of all metrics, those of one kind of object together.
TENSORPOOL_API std::span<const MetricDescription> describe_metrics();

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
