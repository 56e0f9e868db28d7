#pragma once

/// @file
/// The statistics of all objects of this process that hold tensorpool's memory.

#include <string>

#include <tensorpool/process_snapshot.hpp>

namespace tensorpool {

/// The statistics of this process.
using Snapshot = ProcessSnapshot;

/// Returns the statistics of this process and of all its live objects, as a reader in another
/// process sees them. Any thread may call it at any time, and nothing waits for it. Throws
/// std::bad_alloc if there is no memory for the statistics.
TENSORPOOL_API Snapshot take_snapshot();

/// Returns a report for people: that of each pool, device allocator and planned arena, then tables
/// of all other records, such as arenas, the budgets as an indented tree, and the scopes. Empty
/// lists take no line; an empty snapshot gives "".
TENSORPOOL_API std::string to_text(const Snapshot& snapshot);

}  // namespace tensorpool
