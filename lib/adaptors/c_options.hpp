#pragma once

#include <cstddef>

#include <tensorpool/tensorpool.h>
#include <tensorpool/pool_options.hpp>

namespace tensorpool::adaptors {

/// Writes the defaults of `PoolOptions` into the first `struct_bytes` bytes, zeros behind what this
/// version knows. Throws std::invalid_argument as `tensorpool_options_init` fails.
void set_defaults(tensorpool_options* options, std::size_t struct_bytes);

/// Throws std::invalid_argument for a size that cannot be, for a value that is none of its
/// enumeration's and for a field that is set behind those that this version knows.
PoolOptions to_pool_options(const tensorpool_options& options);

}  // namespace tensorpool::adaptors
