#pragma once

#include <stdexcept>

#include <tensorpool/pool_options.hpp>

#include "platform/platform.hpp"

namespace tensorpool {

/// Throws std::invalid_argument if an option is invalid. The message names the option, its value
/// and what was expected.
void validate(const PoolOptions& options);

/// Returns `options` with the values that TENSORPOOL_* environment variables override. An invalid
/// value is reported on stderr with the variable's name, the expected value and the value used
/// instead.
PoolOptions options_from_environment(PoolOptions options);

/// Returns the value of TENSORPOOL_RETAIN_BACKGROUND; `off` if it is not set or invalid, which
/// `options_from_environment` reports.
BackgroundTrim background_trim_from_environment() noexcept;

}  // namespace tensorpool
