#pragma once

#include <tensorpool/arena_options.hpp>

namespace tensorpool::arena {

/// What the environment says now; `arena_defaults()` keeps what it said first.
detail::ArenaDefaults defaults_from_environment();

}  // namespace tensorpool::arena
