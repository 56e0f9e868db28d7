#pragma once

#include <string>
#include <vector>

#include <tensorpool/metrics.hpp>

namespace tensorpool::read {

/// Returns the metrics in the text exposition format of Prometheus (version 0.0.4).
std::string prometheus_text(const std::vector<MetricFamily>& families);

}  // namespace tensorpool::read
