#pragma once

#include "platform/process/processes.hpp"
#include "read/segment_problem.hpp"

/// Messages about processes that cannot be read, with advice.
namespace tensorpool::read {

/// Returns why no segment was found in a process. With Look::allowed, the reason is that the
/// process has none.
SegmentProblem problem_of(platform::Look look);
SegmentProblem closed_problem();
SegmentProblem ended_problem();
SegmentProblem other_program_problem();

}  // namespace tensorpool::read
