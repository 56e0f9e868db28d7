#pragma once

/// @file
/// Runs the same work with each allocator, round after round, and compares the results.

#include "options.hpp"

namespace tensorpool::photos {

/// Runs all rounds, prints the progress, and the table at the end. Returns the exit status: 1 if a
/// picture failed or results differ, otherwise 0. Throws std::runtime_error if there are no
/// pictures, a process fails, or a result would overwrite one of the pictures.
int hold_contest(const Options& options);

}  // namespace tensorpool::photos
