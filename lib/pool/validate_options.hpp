#pragma once

#include <stdexcept>
#include <string>

#include <tensorpool/pool_options.hpp>

#include "platform/platform.hpp"

namespace tensorpool {

/// Throws std::invalid_argument that names the option, what was found and what was expected.
void validate(const PoolOptions& options);

}  // namespace tensorpool
