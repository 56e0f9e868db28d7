#pragma once

#include <string>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command {

/// Returns the metrics in the text format of the content type below. Empty if there are no
/// snapshots.
std::string metrics_text(const std::vector<ProcessSnapshot>& snapshots);

/// The content type of the text exposition format that prometheus-cpp writes.
inline constexpr const char* metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace tensorpool::command
