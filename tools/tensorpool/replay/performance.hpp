#pragma once

/// @file
/// Performs a plan with its threads, and measures what they use.

#include <cstdint>

#include "replay/allocator_task.hpp"
#include "replay/plan_file.hpp"

namespace tensorpool::command::replay {

/// Plays the plan on as many threads as it has, and fills in the measurements or the problem.
/// Blocks that were never freed are left. During the measurement it allocates only by the plan's
/// steps; before it, starting threads allocates too.
void perform(const ReplayTask& task, const PlanView& plan, ReplayAnswer& answer) noexcept;

/// Writes the answer and ends the process.
[[noreturn]] void answer_and_end(int descriptor, const ReplayAnswer& answer) noexcept;

}  // namespace tensorpool::command::replay
