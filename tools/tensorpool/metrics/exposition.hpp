#pragma once

#include <vector>

#include <prometheus/metric_family.h>
#include <tensorpool/metrics.hpp>

namespace tensorpool::command {

/// Converts metrics to prometheus-cpp's types, for its text serializer. Release 1.0.1 escapes
/// labels and writes +Inf correctly, but does not escape help texts, so this function does.
std::vector<prometheus::MetricFamily> to_exposition(const std::vector<MetricFamily>& families);

}  // namespace tensorpool::command
