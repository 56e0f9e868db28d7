#pragma once

#include <tensorpool/pool_options.hpp>

namespace tensorpool {

/// The options that TENSORPOOL_* variables give, over those given. A value that makes no sense is
/// told on stderr with the variable's name, what was expected and what is used instead.
PoolOptions options_from_environment(PoolOptions options);

/// TENSORPOOL_REPORT: a report of all that holds memory is wanted when the program ends.
bool report_wanted_by_environment();

}  // namespace tensorpool
