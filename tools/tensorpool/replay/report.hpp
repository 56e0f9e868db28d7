#pragma once

/// @file
/// The output of a replay.

#include <string>
#include <vector>

#include "common/units.hpp"
#include "replay/plan.hpp"
#include "replay/rounds.hpp"

namespace tensorpool::command::replay {

/// The replayed process, and how it was replayed.
struct Subject {
    std::string trace;  ///< path of the file
    std::uint64_t process = 0;
    std::string process_name;
    std::size_t processes = 1;  ///< in the file
    std::uint64_t dropped = 0;  ///< entries that the recorder dropped because a ring was full
    PlanStatistics statistics;
    std::string touch;
    std::uint64_t cut_bytes = 0;  ///< bytes at the end of the file that are no complete chunk
};

/// Returns some lines about the subject, then the table.
std::string report_text(const Subject& subject, const std::vector<Result>& results, Sizes sizes);
/// Returns one JSON object in each line: the subject, then each allocator.
std::string report_json(const Subject& subject, const std::vector<Result>& results);

}  // namespace tensorpool::command::replay
