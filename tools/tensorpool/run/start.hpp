#pragma once

#include "run/arguments.hpp"

namespace tensorpool::command::run {

/// Runs the program and prints the report. Returns the program's exit code. If a signal ended the
/// program, the same signal ends this process. Throws CommandError if the program could not be
/// started.
int run_program(const Arguments& arguments, bool json);

}  // namespace tensorpool::command::run
