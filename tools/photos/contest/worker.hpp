#pragma once

/// @file
/// The work of one of the compared processes.

#include "options.hpp"

namespace tensorpool::photos {

/// Develops the pictures of `options` into its output folder, with memory from the allocator
/// `options.work`, and reports to the comparing process on standard output. With `probe`, only
/// reports which library provides malloc. A failed picture is reported and does not end the work.
/// Returns the exit status: 2 for unknown work, otherwise 0.
int work(const Options& options);

}  // namespace tensorpool::photos
