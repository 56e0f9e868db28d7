#pragma once

#include <tensorpool/pool_options.hpp>

namespace tensorpool {

/// The options that TENSORPOOL_* variables give, over those given. A value that makes no sense is
/// told on stderr with the variable's name, what was expected and what is used instead.
PoolOptions options_from_environment(PoolOptions options);

}  // namespace tensorpool
