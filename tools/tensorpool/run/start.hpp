#pragma once

#include "run/arguments.hpp"
#include "run/family.hpp"
#include "run/report.hpp"

namespace tensorpool::command::run {

/// Runs the program and prints the report. `looks` are called for each of its processes that used a
/// pool. Throws CommandError if the program could not be started.
Outcome run_and_report(const Arguments& arguments, bool json, Family::Looks looks = {});

/// Returns the program's exit code. If a signal ended the program, the same signal ends this
/// process.
int end_like(const Outcome& outcome);

}  // namespace tensorpool::command::run
