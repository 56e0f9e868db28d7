#pragma once

/// @file
/// How much memory there is.

#include <cstddef>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// Bytes that this process may still take: what the system has available, and no more than what the
/// limits of its container (cgroup v2 or v1, all ancestors) and RLIMIT_AS leave. Reads the system's
/// files: microseconds, not nanoseconds. Any thread.
TENSORPOOL_API std::size_t get_available_memory();

/// Bytes in all: the machine's memory, or the container's limit where that is less. Any thread.
TENSORPOOL_API std::size_t get_total_memory();

}  // namespace tensorpool
