#pragma once

#include <tensorpool/arena_options.hpp>

namespace tensorpool::arena {

/// Reads the defaults from the environment; `arena_defaults()` keeps the values of the first call.
detail::ArenaDefaults defaults_from_environment();

}  // namespace tensorpool::arena
