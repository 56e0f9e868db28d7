#pragma once

#include <tensorpool/arena_options.hpp>

namespace tensorpool::arena {

/// Throws std::invalid_argument that names the option, the value found and what was expected.
void validate(const ArenaOptions& options);

}  // namespace tensorpool::arena
