#pragma once

#include "run/family.hpp"
#include "run/observer.hpp"
#include "run/program.hpp"
#include "run/signals.hpp"

namespace tensorpool::command::run {

/// Sleeps until something comes, and does what that calls for, until the program has ended. With
/// `traces` it wakes a thousand times a second at most, to take out what was recorded.
void follow(Program& program, const Signals& signals, Observer& observer, Family& family,
            bool traces);

}  // namespace tensorpool::command::run
