#pragma once

#include "run/arguments.hpp"
#include "run/family.hpp"
#include "run/report.hpp"

namespace tensorpool::command::run {

/// Runs the program and prints the report. `last_look`, if set, is called for each of its processes
/// that used a pool. Throws CommandError if the program could not be started.
Outcome run_and_report(const Arguments& arguments, bool json, Family::LastLook last_look = {});

/// Returns the program's exit code. If a signal ended the program, the same signal ends this
/// process.
int end_like(const Outcome& outcome);

}  // namespace tensorpool::command::run
