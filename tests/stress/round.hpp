#pragma once

#include <cstdint>

#include "stress/command_line.hpp"

namespace tensorpool::stress {

/// Runs threads on new pools, and checks the pools' statistics at the end.
void run_round(const CommandLine& line, std::uint64_t seed);

}  // namespace tensorpool::stress
