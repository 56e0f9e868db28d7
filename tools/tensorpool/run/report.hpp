#pragma once

/// @file
/// The report that is printed when the program has ended.

#include "formats/launch/launch.hpp"

namespace tensorpool::command::run {

using launch::Outcome;
using launch::Part;
using launch::PartNotes;
using launch::PlannedPart;
using launch::ProcessResult;
using launch::Results;
using launch::TraceOutput;

struct Arguments : launch::Arguments {
    std::string trace;   ///< a path; "": no recording
    std::string report;  ///< a path, or none; "": standard error
};

struct Report {
    const Arguments& arguments;
    const std::vector<PlannedPart>& parts;
    const Outcome& outcome;
    const Results& results;
    const TraceOutput* trace;  ///< nullptr: nothing was recorded
};

/// Formats the report for people: the parts that were enabled and those that were not, then the
/// pools.
std::string to_text(const Report& report);
/// Formats the report as one JSON object per line: the run, then each process.
std::string to_json(const Report& report);

}  // namespace tensorpool::command::run
