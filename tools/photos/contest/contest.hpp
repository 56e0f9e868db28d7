#pragma once

/// @file
/// The same work for each contender, round after round, and what came of it.

#include "options.hpp"

namespace tensorpool::photos {

/// Runs all rounds, prints as it goes, and the table at the end. Returns the exit status: 1 when a
/// picture failed or results differ, otherwise 0. Throws std::runtime_error when there are no
/// pictures, a process fails, or a result would replace one of the pictures.
int hold_contest(const Options& options);

}  // namespace tensorpool::photos
