#pragma once

/// @file
/// The report that is printed when the program has ended.

#include <cstdint>
#include <string>
#include <vector>

#include "run/arguments.hpp"
#include "run/parts.hpp"
#include "run/results.hpp"
#include "run/trace_output.hpp"

namespace tensorpool::command::run {

/// How the program ended, and its resource usage.
struct Outcome {
    int code = 0;    ///< its exit code
    int signal = 0;  ///< the signal that ended it; 0: none
    double user_seconds = 0;
    double system_seconds = 0;
    std::uint64_t minor_faults = 0;
    std::uint64_t peak_resident_bytes = 0;  ///< of the process with the largest peak
};
/// Includes the usage of all children that have ended.
Outcome outcome_of(int code, int signal);

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
