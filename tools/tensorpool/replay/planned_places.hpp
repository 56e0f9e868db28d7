#pragma once

#include <tensorpool/memory_plan.hpp>

#include "replay/life_order.hpp"
#include "trace/recording.hpp"

namespace tensorpool::command::replay {

/// A plan of all lives, in their order: each aligned as the pool's blocks are, or as was asked for.
/// Takes a second at most where the greedy orders do not take longer.
MemoryPlan planned_places(const trace::Recording& recording, const LifeOrder& order);

}  // namespace tensorpool::command::replay
