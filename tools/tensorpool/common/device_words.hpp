#pragma once

/// @file
/// The figures of a device allocator beside PyTorch's words for them.

#include <tensorpool/device_statistics.hpp>

#include "common/table.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

/// Columns: ours, PyTorch's, now, the peak, and the running totals of what came and went.
Table device_words_table(const DeviceStatistics& device, Sizes sizes);

}  // namespace tensorpool::command
