#pragma once

/// @file
/// The work itself, as one of the processes that are compared does it.

#include "options.hpp"

namespace tensorpool::photos {

/// Develops the pictures of `options` into its output folder, with the memory that `options.work`
/// names, and tells the driver on standard output. With `probe` it only tells what serves malloc.
/// A picture that fails is told and does not end the work. Returns the exit status: 2 for unknown
/// work, otherwise 0.
int work(const Options& options);

}  // namespace tensorpool::photos
