#pragma once

#include <cstddef>

namespace perf {

/// Bytes that this process holds in memory now, shared memory counted and program files not, which
/// the system could drop. Counted page by page (/proc/self/smaps_rollup): exact, where quicker
/// figures lag behind. Allocates nothing.
std::size_t resident_bytes();

/// The most that this process ever had in memory, in bytes. Allocates nothing.
std::size_t peak_resident_bytes();

/// Mappings of this process: lines of /proc/self/maps. Allocates nothing.
std::size_t mapping_count();

}  // namespace perf
