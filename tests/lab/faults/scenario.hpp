#pragma once

#include "lab/faults/platform_calls.hpp"

namespace tensorpool::faults {

/// The allowed failures of calls on a pool. `none`: no call may fail. `one`: with one refusal in
/// the whole scenario, a failed call must succeed when it is repeated.
enum class Failures { none, one, many };

/// Uses all functions of pools, in pools of its own, and checks single steps against a model.
/// Throws testing::Mismatch. It calls refuse_nothing to end refusals while the last pool exists.
/// From then on, that pool must work, be emptied, and be destroyed.
void run_scenario(Failures failures);

/// Runs a smaller scenario on the global pool of the process, whose memory stays.
void run_scenario_with_global_pool(Failures failures);

/// Freezes blocks in place, uses them, also in children of forks, and thaws them. A page fault that
/// cannot be served ends the process. Built with the component `stash`.
void run_scenario_with_frozen_blocks(Failures failures);
/// Returns whether the system lets this process freeze blocks.
bool may_freeze();

}  // namespace tensorpool::faults
