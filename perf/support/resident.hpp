#pragma once

#include <cstddef>

namespace perf {

/// Bytes of this process that are in memory now, counted page by page by the system (`Rss` of
/// /proc/self/smaps_rollup): exact, where quicker figures lag behind. Allocates nothing.
std::size_t resident_bytes();

/// The most that this process ever had in memory, in bytes. Allocates nothing.
std::size_t peak_resident_bytes();

/// Mappings of this process: lines of /proc/self/maps. Allocates nothing.
std::size_t mapping_count();

}  // namespace perf
