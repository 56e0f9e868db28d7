#pragma once

/// @file
/// Runs this program again in a child process.

#include <functional>
#include <string>
#include <vector>

#include "contest/measurement.hpp"

namespace tensorpool::photos {

/// How the child is started.
struct ChildOrder {
    std::vector<std::string> arguments;  ///< without the program's name
    std::string preload;                 ///< its LD_PRELOAD; empty: none, regardless of ours
    bool quiet = false;                  ///< discards its standard error
};

/// Runs this program's own file, passes each line of its standard output to `on_line` as it
/// arrives, waits for its end, and returns its resource usage. Throws std::runtime_error if the
/// child cannot be started or is ended by a signal or with a status other than 0. Exceptions of
/// `on_line` are rethrown after the child's end.
Measurement run_self(const ChildOrder& order,
                     const std::function<void(const std::string&)>& on_line);

}  // namespace tensorpool::photos
