#pragma once

/// @file
/// What a replay prints.

#include <string>
#include <vector>

#include "common/units.hpp"
#include "replay/plan.hpp"
#include "replay/rounds.hpp"

namespace tensorpool::command::replay {

/// What was replayed, and how.
struct Subject {
    std::string trace;  ///< path of the file
    std::uint64_t process = 0;
    std::string process_name;
    std::size_t processes = 1;  ///< in the file
    std::uint64_t dropped = 0;  ///< entries that the recorder had no room for
    PlanFigures figures;
    std::string touch;
    std::uint64_t cut_bytes = 0;  ///< at the end of the file, which were no whole chunk
};

/// Some lines on the subject, then the table.
std::string report_text(const Subject& subject, const std::vector<Result>& results, Sizes sizes);
/// One object a line: the subject, then each contender.
std::string report_json(const Subject& subject, const std::vector<Result>& results);

}  // namespace tensorpool::command::replay
