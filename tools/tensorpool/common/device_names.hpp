#pragma once

/// @file
/// The statistics of a device allocator beside PyTorch's names for them.

#include <tensorpool/device_statistics.hpp>

#include "common/table.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

/// Columns: our name, PyTorch's name, the current value, the peak, and the running totals allocated
/// and freed.
Table device_names_table(const DeviceStatistics& device, Sizes sizes);

}  // namespace tensorpool::command
