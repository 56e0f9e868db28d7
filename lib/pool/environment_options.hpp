#pragma once

#include <tensorpool/pool_options.hpp>

namespace tensorpool {

/// Returns `options` with the values that TENSORPOOL_* environment variables override. An invalid
/// value is reported on stderr with the variable's name, the expected value and the value used
/// instead.
PoolOptions options_from_environment(PoolOptions options);

}  // namespace tensorpool
