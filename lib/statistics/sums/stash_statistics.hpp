#pragma once

#include <vector>

#include <tensorpool/stash_statistics.hpp>

#include "statistics/segment/segment_image.hpp"

namespace tensorpool::statistics {

/// Returns the statistics of what rests, by the records, in the order in which they were made.
/// Leaves out names without tensors whose budget ended: a program may have a budget for each
/// request.
std::vector<StashStatistics> stashes_in(const SegmentImage& image);

}  // namespace tensorpool::statistics
