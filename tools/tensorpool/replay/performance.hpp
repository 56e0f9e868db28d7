#pragma once

/// @file
/// A plan performed: its threads, and what they used.

#include <cstdint>

#include "replay/contender.hpp"
#include "replay/plan_file.hpp"

namespace tensorpool::command::replay {

/// Plays the plan on as many threads as it has and fills in the figures, or the problem. Blocks
/// that nobody freed are left. Asks for no memory but by the plan's steps and, before the
/// measurement, for what the system's threads need.
void perform(const ContenderTask& task, const PlanView& plan, ContenderAnswer& answer) noexcept;

/// Writes the answer and ends the process.
[[noreturn]] void answer_and_end(int descriptor, const ContenderAnswer& answer) noexcept;

}  // namespace tensorpool::command::replay
