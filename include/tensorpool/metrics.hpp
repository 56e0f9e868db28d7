#pragma once

/// @file
/// The meaning of each metric, and the metrics of processes in the form that Prometheus and similar
/// systems accept: names with labels.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/export.hpp>
#include <tensorpool/process_snapshot.hpp>

namespace tensorpool {

/// The description of one metric. All strings are valid for the lifetime of the program.
struct MetricDescription {
    /// The kind of object it belongs to: "process", "pool", "bucket", "large", "arena", "device",
    /// "planned", "budget", "stash", "scope" or "thread".
    const char* of;
    /// The name of the field, in JSON and in the structure.
    const char* name;
    /// The unit: "bytes", or what is counted, such as "calls".
    const char* unit;
    /// "gauge", "total" (only grows) or "peak" (the highest value so far).
    const char* kind;
    /// A sentence that defines the metric and ends with a full stop.
    const char* sentence;
    /// The name of the Prometheus metric; "" if it is not exported under a name of its own.
    const char* prometheus;
    /// PyTorch's name, in `torch.cuda.memory_stats()` or in a block's state; "" if PyTorch has
    /// none. Only metrics of device allocators have one.
    const char* pytorch;
};

/// Returns the descriptions of all metrics, grouped by kind of object.
TENSORPOOL_API std::span<const MetricDescription> describe_metrics();

/// One value of a metric.
struct MetricSample {
    /// The names and values of the labels, not escaped.
    std::vector<std::pair<std::string, std::string>> labels;
    /// The value.
    double value = 0;
};

/// A metric with one value for each combination of labels.
struct MetricFamily {
    /// The type of a metric in Prometheus.
    enum class Kind : std::uint8_t {
        gauge,    ///< a value that may rise and fall
        counter,  ///< a total that only grows
    };

    /// The name, such as tensorpool_block_bytes. The name of a counter ends in _total.
    std::string name;
    /// A sentence that defines the metric.
    std::string help;
    /// The type of the metric.
    Kind kind = Kind::gauge;
    /// The values.
    std::vector<MetricSample> samples;
};

/// Returns all metrics of the snapshots; families without a sample are left out.
///
/// Every sample has the labels `pid` and `process`, then `pool`, `arena`, `budget`,
/// `stash` or `scope`, then
/// the label that divides the metric (`tier`, `source`, `reason`, `kind`). If several objects of a
/// process share a name, the later ones get their number appended, as in "images #7", so that no
/// two samples of a family have the same labels. The label `budget` is a path such as
/// "process/cache/images".
TENSORPOOL_API std::vector<MetricFamily> metric_families(
    const std::vector<ProcessSnapshot>& snapshots);

/// Returns metrics in the text exposition format of Prometheus (version 0.0.4), with one HELP and
/// one TYPE for each family.
TENSORPOOL_API std::string to_prometheus(const std::vector<MetricFamily>& families);

}  // namespace tensorpool
