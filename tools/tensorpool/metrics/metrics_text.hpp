#pragma once

#include <string>
#include <vector>

#include <tensorpool/metrics.hpp>
#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command {

/// Returns the metrics of the snapshots, and `more`, in the text format of the content type below.
/// Empty if there are none.
std::string metrics_text(const std::vector<ProcessSnapshot>& snapshots,
                         const std::vector<MetricFamily>& more = {});

/// The content type of the text exposition format that prometheus-cpp writes.
inline constexpr const char* metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace tensorpool::command
