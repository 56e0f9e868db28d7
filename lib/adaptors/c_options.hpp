#pragma once

#include <cstddef>

#include <tensorpool/tensorpool.h>
#include <tensorpool/pool_options.hpp>

namespace tensorpool::adaptors {

/// Writes the defaults of `PoolOptions` into the first `struct_bytes` bytes of `options`, and zeros
/// into the fields that this version does not know. Throws std::invalid_argument if `options` is
/// nullptr or the size is not that of any version of the struct.
void set_defaults(tensorpool_options* options, std::size_t struct_bytes);

/// Converts the options of the C interface. Throws std::invalid_argument for a size that is not
/// that of any version of the struct, for a value outside its enumeration, and for a set field that
/// this version does not know.
PoolOptions to_pool_options(const tensorpool_options& options);

}  // namespace tensorpool::adaptors
