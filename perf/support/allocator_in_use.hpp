#pragma once

#include <string>

namespace perf {

/// Returns the name of the file that contains this process's `malloc`, according to
/// /proc/self/maps, such as `libc.so.6` or `libjemalloc.so.2`. This shows which library was loaded,
/// whatever was requested. Returns "unknown" if the file cannot be found.
std::string allocator_in_use();

}  // namespace perf
