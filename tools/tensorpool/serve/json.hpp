#pragma once

/// @file
/// The data for the page, as JSON. Invalid UTF-8 in a name becomes U+FFFD.

#include <string>
#include <string_view>
#include <tensorpool/process_snapshot.hpp>
#include <tensorpool/timeline.hpp>
#include <vector>

#include "serve/watch/processes.hpp"

namespace tensorpool::command::serve {

/// Returns a JSON string, including its quotes.
std::string json_string(std::string_view text);

std::string to_json(const std::vector<ListedProcess>& processes);
/// Returns the data of the event `snapshot`.
std::string to_json(const ProcessSnapshot& snapshot, const ProcessRates& rates);
/// Returns the data of the event `timeline`.
std::string to_json(const TimelinePart& part);
/// Returns the data of the event `ended`: the time, in seconds since 1970.
std::string ended_json(std::uint64_t time_unix_ns);
/// Returns the body of the answer to a rejected request.
std::string error_json(std::string_view message);

}  // namespace tensorpool::command::serve
