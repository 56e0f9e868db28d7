#pragma once

/// @file
/// Runs allocators in processes of their own.

#include <string>

#include "replay/allocator_task.hpp"
#include "replay/replay_allocators.hpp"

namespace tensorpool::command::replay {

/// Runs this program again with the allocator and waits for its end. `plan` is a file descriptor.
/// Variables that tune allocators are not passed on, except those of `allocator`. Throws
/// CommandError if the process ends without measurements.
ReplayAnswer run_allocator(const ReplayAllocator& allocator, Touch touch, int plan);

/// Returns why an allocator is not available, with a hint for the user; "" if it is available.
/// Throws CommandError if the pool rejects its options.
std::string why_unavailable(const ReplayAllocator& allocator);

}  // namespace tensorpool::command::replay
