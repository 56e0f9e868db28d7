#pragma once

/// @file
/// Simulates the threads of a plan in one thread, in any order that their waits allow.

#include <cstdint>
#include <string>
#include <vector>

#include "replay/plan.hpp"

namespace tensorpool::command::replay {

struct SimulatedRun {
    std::string problem;  ///< the first problem; "" if there is none
    std::uint64_t max_alive_bytes = 0;
    /// For each thread, the results of its steps: the allocated size, or 0 for a free.
    std::vector<std::vector<std::uint64_t>> results;
};

/// Simulates a plan; `seed` determines the order of threads. Reports as problems that all threads
/// wait, that a slot is written that still holds a block, that an empty slot is read, and that a
/// block of another thread is read without waiting.
SimulatedRun simulate(const Plan& plan, unsigned seed);

}  // namespace tensorpool::command::replay
