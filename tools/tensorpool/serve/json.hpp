#pragma once

/// @file
/// What the page is told, as JSON. What is not UTF-8 in a name becomes U+FFFD.

#include <string>
#include <string_view>
#include <tensorpool/process_snapshot.hpp>
#include <tensorpool/timeline.hpp>
#include <vector>

#include "serve/watch/listed_process.hpp"

namespace tensorpool::command::serve {

/// A JSON string, its quotes included.
std::string json_string(std::string_view text);

std::string to_json(const std::vector<ListedProcess>& processes);
/// The event `snapshot`.
std::string to_json(const ProcessSnapshot& snapshot, const ProcessRates& rates);
/// The event `timeline`.
std::string to_json(const TimelinePart& part);
/// The event `ended`: when, in nanoseconds since 1970.
std::string ended_json(std::uint64_t time_unix_ns);
/// What a refused request gets.
std::string error_json(std::string_view message);

}  // namespace tensorpool::command::serve
