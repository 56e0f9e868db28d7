#pragma once

/// @file
/// This program once more, in a process of its own.

#include <functional>
#include <string>
#include <vector>

#include "contest/measurement.hpp"

namespace tensorpool::photos {

/// How a child is started.
struct ChildOrder {
    std::vector<std::string> arguments;  ///< without the program's name
    std::string preload;                 ///< its LD_PRELOAD; empty: none, whatever ours is
    bool quiet = false;                  ///< its standard error goes nowhere
};

/// Runs this program's own file, hands each line of its standard output to `on_line` as it comes,
/// waits for its end and says what it took. Throws std::runtime_error when it cannot be started, or
/// ended by a signal or with a status other than 0, and whatever `on_line` throws, after the
/// child's end.
Measurement run_self(const ChildOrder& order,
                     const std::function<void(const std::string&)>& on_line);

}  // namespace tensorpool::photos
