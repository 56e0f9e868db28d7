#pragma once

#include "top/top_state.hpp"

namespace tensorpool::command {

/// Process 4711, "train": pools "weights" (id 1) and "batches" (id 2), an arena, a scratch, a
/// device allocator "activations" (id 5), a scope, two threads.
ProcessSnapshot made_up_snapshot();
/// Returns the snapshot after `seconds`, with this many more allocations in the pool "weights".
ProcessSnapshot later(ProcessSnapshot snapshot, double seconds, std::uint64_t allocations);
/// The process 4711, chosen and read twice, and one that cannot be read.
TopData made_up_data();

}  // namespace tensorpool::command
