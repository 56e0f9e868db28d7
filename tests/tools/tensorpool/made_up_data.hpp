#pragma once

#include "top/top_data.hpp"

namespace tensorpool::command {

/// Process 4711, "train": pools "weights" (id 1) and "batches" (id 2), an arena, a scratch, a
/// device allocator "activations" (id 5), a scope, two threads.
ProcessSnapshot made_up_snapshot();
/// The same, `seconds` and so many allocations of the pool "weights" later.
ProcessSnapshot later(ProcessSnapshot snapshot, double seconds, std::uint64_t allocations);
/// That process, chosen and looked at twice, and one that cannot be read.
TopData made_up_data();

}  // namespace tensorpool::command
