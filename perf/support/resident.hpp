#pragma once

#include <cstddef>

namespace perf {

/// Returns the resident bytes of this process: anonymous and shared memory, without program files,
/// which the system could drop. The kernel counts them page by page (/proc/self/smaps_rollup); this
/// is exact, while faster sources lag behind. Allocates nothing.
std::size_t resident_bytes();

/// Returns the peak resident bytes of this process. Allocates nothing.
std::size_t peak_resident_bytes();

/// Returns the number of mappings of this process, the lines of /proc/self/maps. Allocates nothing.
std::size_t mapping_count();

}  // namespace perf
