#pragma once

#include "run/family.hpp"
#include "run/observer.hpp"
#include "run/program.hpp"
#include "run/signals.hpp"

namespace tensorpool::command::run {

/// Waits for signals, messages and the ends of processes, and handles them, until the program has
/// ended. With `polls`, also calls `Family::look` and reads the recorded entries, at most a
/// thousand times a second.
void follow(Program& program, const Signals& signals, Observer& observer, Family& family,
            bool polls);

}  // namespace tensorpool::command::run
