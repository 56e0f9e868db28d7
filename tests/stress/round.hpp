#pragma once

#include <cstdint>

#include "stress/command_line.hpp"

namespace tensorpool::stress {

/// New pools, threads that use them, and the figures at the end.
void run_round(const CommandLine& line, std::uint64_t seed);

}  // namespace tensorpool::stress
