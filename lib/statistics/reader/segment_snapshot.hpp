#pragma once

#include <optional>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

#include "statistics/reader/segment_view.hpp"

namespace tensorpool::statistics {

/// Reads the segment into `to`: everything except the time, thread names and facts that the system
/// knows about the process. Reads again, a few times, if the structure of the segment changed in
/// the meantime; if it never succeeds, `consistent` is false. Throws std::bad_alloc.
std::optional<SegmentProblem> read_segment(SegmentView& view, ProcessSnapshot& to);

/// Returns the statistics of the scopes of a segment. Throws std::bad_alloc.
std::vector<ScopeStatistics> scopes_in(const SegmentImage& image);

}  // namespace tensorpool::statistics
