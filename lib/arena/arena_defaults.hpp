#pragma once

#include <tensorpool/arena_options.hpp>

namespace tensorpool::arena {

/// Throws std::invalid_argument that names the option, the value found and what was expected.
void validate(const ArenaOptions& options);

/// Reads the defaults from the environment; `arena_defaults()` keeps the values of the first call.
detail::ArenaDefaults defaults_from_environment();

}  // namespace tensorpool::arena
