#pragma once

#include <stdexcept>
#include <string>

#include <tensorpool/pool_options.hpp>

#include "platform/platform.hpp"

namespace tensorpool {

/// Throws std::invalid_argument if an option is invalid. The message names the option, its value
/// and what was expected.
void validate(const PoolOptions& options);

}  // namespace tensorpool
