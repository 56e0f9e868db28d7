#pragma once

#include <optional>
#include <string>

#include <tensorpool/statistics_reader.hpp>

#include "platform/files/observed_file.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Why a segment cannot be read.
struct SegmentProblem {
    AttachFailure failure;
    std::string what;  // was found, and what helps
};

/// Compares all that a header says of its layout with ours. Nothing: it can be read, and no place
/// that it counts lies outside.
std::optional<SegmentProblem> problem_of(const SegmentHeader& header);

/// Reads the header of a file. Nothing: it has been read, and has no problem.
std::optional<SegmentProblem> read_header(const platform::ObservedFile& file, SegmentHeader& to);

}  // namespace tensorpool::statistics
