#pragma once

#include "faults/platform_calls.hpp"

namespace tensorpool::faults {

/// What becomes of a call of the pool that failed: with one refusal in the whole scenario it must
/// succeed when it is made again; without any it must not fail.
enum class Failures { none, one, many };

/// Everything that pools do, in pools of its own, single steps checked against a model. Throws
/// testing::Mismatch. The last pool is still there when refusals end (at refuse_nothing, which it
/// calls): it must work again then, be emptied, and be destroyed.
void run_scenario(Failures failures);

/// The same for the process's global pool, in small; its memory stays.
void run_scenario_with_global_pool(Failures failures);

}  // namespace tensorpool::faults
