#pragma once

#include <string>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command {

/// What is sent to Prometheus, with the type below. Empty without snapshots.
std::string metrics_text(const std::vector<ProcessSnapshot>& snapshots);

/// The text exposition format that prometheus-cpp writes.
inline constexpr const char* metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace tensorpool::command
