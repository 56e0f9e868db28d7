#pragma once

#include <vector>

#include <prometheus/metric_family.h>
#include <tensorpool/metrics.hpp>

namespace tensorpool::command {

/// The same metrics as prometheus-cpp has them, fit for its text serializer: release 1.0.1 escapes
/// labels and writes +Inf as it should, but writes a help as it stands, so this escapes it.
std::vector<prometheus::MetricFamily> to_exposition(const std::vector<MetricFamily>& families);

}  // namespace tensorpool::command
