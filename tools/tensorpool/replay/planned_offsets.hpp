#pragma once

#include <tensorpool/memory_plan.hpp>

#include "replay/lifetime_order.hpp"
#include "trace/recording.hpp"

namespace tensorpool::command::replay {

/// Returns a plan of all blocks, in the order of `LifetimeOrder::lives`. Blocks are aligned to 64
/// bytes, as in the pool, or to the requested alignment if that is larger. Takes at most a second,
/// or as long as the first greedy order takes.
MemoryPlan planned_offsets(const trace::Recording& recording, const LifetimeOrder& order);

}  // namespace tensorpool::command::replay
