#pragma once

/// @file
/// A plan acted out by one thread that plays all, in any order that waiting allows.

#include <cstdint>
#include <string>
#include <vector>

#include "replay/plan.hpp"

namespace tensorpool::command::replay {

struct Acted {
    std::string problem;  ///< what went wrong; "" where nothing did
    std::uint64_t max_alive_bytes = 0;
    /// Of each thread, what its steps did: sizes made, and 0 for a free.
    std::vector<std::vector<std::uint64_t>> story;
};

/// Chooses the next thread by `seed`. Problems are: everybody waits, a slot is written that still
/// holds a block, or read where it holds none or that of another thread without waiting.
Acted act(const Plan& plan, unsigned seed);

}  // namespace tensorpool::command::replay
