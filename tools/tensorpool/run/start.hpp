#pragma once

#include "run/words.hpp"

namespace tensorpool::command::run {

/// Runs the program and prints the report. Returns the program's exit code; where a signal ended it
/// this process ends by the same one. Throws CommandError where the program could not begin.
int run_program(const Words& words, bool json);

}  // namespace tensorpool::command::run
