#pragma once

/// @file
/// Requests to other processes to change how often their pools sample allocations for the heap
/// profile. Linux only: on other systems no process can be reached.

#include <tensorpool/statistics_reader.hpp>

namespace tensorpool {

/// Requests another process of the same user to set the mean distance between the samples of its
/// heap profile, as set_profile_interval(bytes) does; 0 stops sampling. A later request takes the
/// place of one that was not yet seen.
///
/// The process sees the request when one of its threads next takes a slow path of a pool, such as
/// for a large block or after some hundred small ones, or at once if its background trimmer runs
/// (see RetentionPolicy). StatisticsReader::heap_profile() shows the distance that it uses. Throws
/// AttachError if the process has no control or cannot be read, and std::bad_alloc. Any thread may
/// call it.
TENSORPOOL_API void request_profile_interval(std::uint64_t process, std::size_t bytes);

}  // namespace tensorpool
