#pragma once

#include "read/segment_view.hpp"

namespace tensorpool::snapshots {

/// Reads the segment into `to`: everything except the time, thread names and facts that the system
/// knows about the process. Reads again, a few times, if the structure of the segment changed in
/// the meantime; if it never succeeds, `consistent` is false. Throws std::bad_alloc.
std::optional<read::SegmentProblem> read_segment(read::SegmentView& view, ProcessSnapshot& to);

/// Adds the time, and what the system says of a process that this one sees.
void add_facts(ProcessSnapshot& to, bool is_visible);

/// Reads the heap profile in a segment into `to`, whose time is set already. If use exceeds the
/// kept peak, the peak is now. Throws std::bad_alloc.
std::optional<read::SegmentProblem> read_heap_profile(read::SegmentView& view, HeapProfile& to);

}  // namespace tensorpool::snapshots
