#pragma once

#include <optional>

#include <tensorpool/heap_profile.hpp>

#include "read/segment_view.hpp"

namespace tensorpool::snapshots {

/// Reads the heap profile in a segment into `to`, whose time is set already. If use exceeds the
/// kept peak, the peak is now. Throws std::bad_alloc.
std::optional<read::SegmentProblem> read_heap_profile(read::SegmentView& view, HeapProfile& to);

}  // namespace tensorpool::snapshots
