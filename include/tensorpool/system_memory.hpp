#pragma once

/// @file
/// The memory of the system.

#include <cstddef>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// Returns the bytes that this process may still take.
///
/// That is the memory that the system has available, or less if the limits of the container (cgroup
/// v2 or v1, all ancestors) or RLIMIT_AS leave less. The call reads files of the system, which
/// takes microseconds. Any thread may call it.
TENSORPOOL_API std::size_t get_available_memory();

/// Returns the total memory in bytes: the machine's, or the container's limit if that is less. Any
/// thread may call it.
TENSORPOOL_API std::size_t get_total_memory();

}  // namespace tensorpool
