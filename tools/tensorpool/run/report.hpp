#pragma once

/// @file
/// What is told when the program has ended.

#include <cstdint>
#include <string>
#include <vector>

#include "run/parts.hpp"
#include "run/results.hpp"
#include "run/trace_output.hpp"
#include "run/words.hpp"

namespace tensorpool::command::run {

/// What the program came to.
struct Outcome {
    int code = 0;    ///< its exit code
    int signal = 0;  ///< that ended it; 0: none
    double user_seconds = 0;
    double system_seconds = 0;
    std::uint64_t minor_faults = 0;
    std::uint64_t peak_resident_bytes = 0;  ///< of the largest of its processes
};
/// Of all children that have ended.
Outcome outcome_of(int code, int signal);

struct Report {
    const Words& words;
    const std::vector<PlannedPart>& parts;
    const Outcome& outcome;
    const Results& results;
    const TraceOutput* trace;  ///< nullptr: nothing was recorded
};

/// Lines for people: what was put under the program and what not, then its pools.
std::string to_text(const Report& report);
/// One JSON object a line: the run, then each process.
std::string to_json(const Report& report);

}  // namespace tensorpool::command::run
