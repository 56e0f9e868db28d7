#pragma once

#include "platform/process/processes.hpp"
#include "statistics/reader/segment_problem.hpp"

/// What is said of a process that cannot be read, and what helps.
namespace tensorpool::statistics {

/// Why no segment was found in a process; for Look::allowed that it has none.
SegmentProblem problem_of(platform::Look look);
SegmentProblem closed_problem();
SegmentProblem ended_problem();
SegmentProblem other_program_problem();

}  // namespace tensorpool::statistics
