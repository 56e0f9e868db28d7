#pragma once

#include <string>

namespace perf {

/// The file that `malloc` of this process lies in, by /proc/self/maps, such as `libc.so.6` or
/// `libjemalloc.so.2`: what was really loaded, not what was asked for. "unknown" where that cannot
/// be read.
std::string allocator_in_use();

}  // namespace perf
