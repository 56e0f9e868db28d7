#pragma once

#include <optional>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

#include "statistics/reader/segment_view.hpp"

namespace tensorpool::statistics {

/// Looks at the segment and fills in all that it tells: everything but the facts of the process
/// that the system knows, the names of threads and the time. Looks again where structure changed
/// meanwhile, a few times; then `consistent` is false. Throws std::bad_alloc.
std::optional<SegmentProblem> read_segment(SegmentView& view, ProcessSnapshot& to);

/// What the scopes of a segment did, by name. Throws std::bad_alloc.
std::vector<ScopeStatistics> scopes_in(const SegmentImage& image);

}  // namespace tensorpool::statistics
