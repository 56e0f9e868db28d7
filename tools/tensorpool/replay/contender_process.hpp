#pragma once

/// @file
/// A contender in a process of its own.

#include <string>

#include "replay/contender.hpp"
#include "replay/contenders.hpp"

namespace tensorpool::command::replay {

/// Runs this program again as the contender and waits for its end. `plan` is a descriptor; -1: it
/// only says what it is. Variables that would tune an allocator are not passed on, but for its own.
/// Throws CommandError where it ends without figures.
ContenderAnswer run_contender(const Contender& contender, Touch touch, int plan);

/// Why a contender is not what it is called, in words that tell what helps; "" where it is. Throws
/// CommandError where the pool does not take its options.
std::string what_hinders(const Contender& contender);

}  // namespace tensorpool::command::replay
