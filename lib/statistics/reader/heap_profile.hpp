#pragma once

#include <optional>

#include <tensorpool/heap_profile.hpp>

#include "statistics/reader/segment_view.hpp"

namespace tensorpool::statistics {

/// Reads the heap profile in a segment into `to`, whose time is set already. If use exceeds the
/// kept peak, the peak is now. Throws std::bad_alloc.
std::optional<SegmentProblem> read_heap_profile(SegmentView& view, HeapProfile& to);

}  // namespace tensorpool::statistics
