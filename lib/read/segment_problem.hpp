#pragma once

#include <tensorpool/statistics_reader.hpp>

#include "platform/process/processes.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::read {

struct SegmentProblem {
    AttachFailure failure;
    std::string what;  // what was found, and advice
};

/// Compares the layout that a header describes with that of this library. Returns nothing if the
/// segment can be read and all records that the header counts lie inside it.
std::optional<SegmentProblem> problem_of(const statistics::SegmentHeader& header);

/// Reads the header of a file. Returns nothing if it was read and has no problem.
std::optional<SegmentProblem> read_header(const platform::ObservedFile& file,
                                          statistics::SegmentHeader& to);

/// Returns why no segment was found in a process. With Look::allowed, the reason is that the
/// process has none.
SegmentProblem problem_of(platform::Look look);
SegmentProblem closed_problem();
SegmentProblem ended_problem();
SegmentProblem other_program_problem();

}  // namespace tensorpool::read
