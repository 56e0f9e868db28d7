#pragma once

#include <tensorpool/planned_arena_options.hpp>

namespace tensorpool::planned {

/// Throws std::invalid_argument if an option is invalid. The message names the arena, the option,
/// what was found and what was expected.
void validate(const PlannedArenaOptions& options);

}  // namespace tensorpool::planned
